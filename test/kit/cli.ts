/** Runs the command line as users do: each command is a process with its own folder and environment. */
import { expect, mock } from "bun:test";
import { existsSync } from "node:fs";
import { connect, createServer } from "node:net";
import { join, resolve } from "node:path";
import * as printing from "../../src/lib/output.ts";
import { openDatabase } from "../../src/store/sqlite/files/open.ts";
import { type LogLine, mintKey as mintKeyIn, onCleanup, temporaryFolder } from "./setup.ts";
import { recordsIn } from "./records.ts";

const variant = process.env["SIGNALBOX_TEST_SOURCE"];
const executable = process.env["SIGNALBOX_TEST_EXECUTABLE"];
/** The folder of the source under test: ours, or a variant of it (`test/faults/kit/variant.ts`). */
export const sourceFolder = variant ?? resolve(import.meta.dir, "../../src");
// Bun looks for it only in the current folder, and tests run in others.
const tsconfig = resolve(import.meta.dir, "../../tsconfig.json");
/** The program under test: the executable if `test/run.ts` has built it, otherwise the source. */
export const signalbox: readonly string[] =
  variant === undefined && executable !== undefined
    ? [executable]
    : [process.execPath, `--tsconfig-override=${tsconfig}`, join(sourceFolder, "main.ts")];
/** A library that the dynamic linker loads before libc. */
const preload = process.env["SIGNALBOX_TEST_PRELOAD"];

export interface CliOptions {
  /** Added to `PATH` and `HOME`; nothing else of our environment is passed on. */
  readonly env?: Record<string, string>;
  /** Nothing if not given. */
  readonly stdin?: string;
  /** A new empty folder if not given. */
  readonly cwd?: string;
  /** Runs instead of {@link signalbox}. */
  readonly program?: readonly string[];
  /** In a process group of its own. */
  readonly detached?: boolean;
  /** {@link cliHere} runs even `serve` in this process. */
  readonly staysHere?: boolean;
}

export interface CliResult {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

export interface ServeProcess {
  readonly pid: number;
  /** As announced in the log. */
  readonly url: string;
  readonly dataDir: string;
  /** All of stdout and stderr so far. */
  readonly output: { stdout: string; stderr: string };
  readonly log: () => LogLine[];
  /** Resolves when a line of the log contains this text. */
  readonly logged: (text: string) => Promise<void>;
  readonly kill: (signal: NodeJS.Signals) => void;
  /** Resolves with the exit code or the name of the signal, when all output was read. */
  readonly exited: Promise<number | string>;
}

/** Longer than any command waits for a lock. A command that hangs is killed, with code 137. */
const COMMAND_TIMEOUT_MS = 20_000;

/** Runs one command to its end, in a process of its own. */
export async function cli(args: readonly string[], options: CliOptions = {}): Promise<CliResult> {
  const child = spawn(args, options, COMMAND_TIMEOUT_MS);
  const [code, stdout, stderr] = await Promise.all([
    child.exited,
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
  ]);
  return { code, stdout, stderr: asShown(stderr) };
}

/** A server that cannot start says why in a line of its log: returns it as a terminal shows it. */
export function asShown(stderr: string): string {
  if (!/^\{"level":"fatal","time":"[^"]+",("node":"[^"]+",)?"msg":"[^\n]*"\}\n$/.test(stderr))
    return stderr;
  const { msg } = JSON.parse(stderr) as LogLine;
  return `${msg.startsWith("error: ") ? "" : "signalbox: "}${msg}\n`;
}

/** These start processes of their own, or stay after they failed. */
const ownProcess = new Set(["backup", "restore", "send", "serve"]);
const printed = { stdout: "", stderr: "" };
const streams = [process.stdin, process.stdout, process.stderr];
let lastHere: Promise<unknown> = Promise.resolve();

/** Like {@link cli}, in this process where it can: a tenth of the work. One command runs at a time. */
export function cliHere(args: readonly string[], options: CliOptions = {}): Promise<CliResult> {
  const isOwn = ownProcess.has(args[0] ?? "") || args.includes("--drill");
  const isHere = options.staysHere ?? (args.includes("--check") || !isOwn);
  const { program, stdin } = options;
  if (variant !== undefined || !isHere || program !== undefined || stdin !== undefined) {
    return cli(args, options);
  }
  const result = lastHere.then(() => runHere(args, options));
  lastHere = result.catch(() => {});
  return result;
}

async function runHere(args: readonly string[], options: CliOptions): Promise<CliResult> {
  await mock.module("../../src/lib/output.ts", () => ({
    ...printing,
    writeToStdout: (text: string) => void (printed.stdout += text),
    writeToStderr: (text: string) => void (printed.stderr += text),
  }));
  const { run } = await import("../../src/cli/run.ts");
  const { createProgram } = await import("../../src/commands/program.ts");
  const before = { cwd: process.cwd(), umask: process.umask(), env: { ...process.env } };
  for (const stream of streams) Object.defineProperty(stream, "isTTY", { value: false });
  setEnvironment(environment(options));
  process.chdir(options.cwd ?? temporaryFolder());
  Object.assign(printed, { stdout: "", stderr: "" });
  try {
    const code = await run(createProgram, args);
    return { code, stdout: printed.stdout, stderr: asShown(printed.stderr) };
  } finally {
    process.chdir(before.cwd);
    process.umask(before.umask);
    setEnvironment(before.env);
  }
}

function setEnvironment(env: Record<string, string | undefined>): void {
  for (const name of Object.keys(process.env)) delete process.env[name];
  Object.assign(process.env, env);
}

/** Runs a command that must fail: code 1, nothing on stdout, and one sentence on stderr. */
export async function expectRefusal(
  args: readonly string[],
  says: string | RegExp,
  options: CliOptions = {},
): Promise<void> {
  const result = await cliHere(args, options);
  expect({ args, ...result }).toEqual({
    args,
    code: 1,
    stdout: "",
    stderr: expect.stringMatching(/^signalbox: [^\n]+\n$/),
  });
  if (typeof says === "string") expect(result.stderr).toContain(says);
  else expect(result.stderr).toMatch(says);
}

/** Runs a command with words that it does not take: code 2, nothing on stdout, and what to type on stderr. */
export async function expectUsageError(
  args: readonly string[],
  says: string | RegExp,
  options: CliOptions = {},
): Promise<void> {
  // `serve` reads its flags before it starts anything.
  const { code, stdout, stderr } = await cliHere(args, { ...options, staysHere: true });
  expect(stderr).toMatch(says);
  expect(stderr).not.toContain("    at ");
  expect({ args, code, stdout }).toEqual({ args, code: 2, stdout: "" });
}

/** Commands on this folder that must succeed. */
export function commandsOn(dataDir: string) {
  const run = async (...args: string[]) => {
    const result = await cliHere([...args, "--data", dataDir]);
    expect({ args, ...result }).toMatchObject({ args, code: 0 });
    return result;
  };
  const json = async <T = unknown>(...args: string[]) =>
    JSON.parse((await run(...args, "--json")).stdout) as T;
  return { run, json };
}

/**
 * Starts `serve` on a free loopback port, waits until it takes signals, and stops it after the test.
 * `bare`: without any flags but those given. `until`: waits for another text in the log.
 */
export async function startServe(
  args: readonly string[] = [],
  options: CliOptions & { dataDir?: string; listen?: string; bare?: boolean; until?: string } = {},
): Promise<ServeProcess> {
  const dataDir = options.dataDir ?? join(temporaryFolder(), "data");
  const where = ["--data", dataDir, "--listen", options.listen ?? "127.0.0.1:0"];
  const child = spawn(["serve", ...(options.bare === true ? [] : where), ...args], options);
  const output = { stdout: "", stderr: "" };
  const waiting = new Set<() => void>();
  const collect = async (name: "stdout" | "stderr"): Promise<void> => {
    const decoder = new TextDecoder();
    for await (const chunk of child[name]) {
      output[name] += decoder.decode(chunk, { stream: true });
      for (const wake of waiting) wake();
    }
  };
  let hasEnded = false;
  const exited = Promise.all([child.exited, collect("stdout"), collect("stderr")]).then(() => {
    hasEnded = true;
    for (const wake of waiting) wake();
    return child.signalCode ?? child.exitCode ?? -1;
  });
  const logged = (text: string): Promise<void> =>
    new Promise((found, failed) => {
      const look = (): void => {
        const isThere = output.stderr.includes(text);
        if (!isThere && !hasEnded) return;
        waiting.delete(look);
        if (isThere) found();
        else failed(new Error(`serve ended without the line "${text}":\n${output.stderr}`));
      };
      waiting.add(look);
      look();
    });
  await logged(options.until ?? "takes signals at");
  const log = (): LogLine[] =>
    output.stderr
      .split("\n")
      .filter((line) => line.startsWith("{"))
      .map((line) => JSON.parse(line) as LogLine);
  return {
    pid: child.pid,
    url: /takes signals at (\S+)\/v1\/signals/.exec(output.stderr)?.[1] ?? "",
    dataDir,
    output,
    log,
    logged,
    kill: (signal) => child.kill(signal),
    exited,
  };
}

/** Sends a request with only half of its body. */
export async function sendHalf(
  url: string,
  key: string,
  headers: Readonly<Record<string, string>> = {},
): Promise<{ finish: () => Promise<void>; closed: Promise<string> }> {
  const { hostname, port } = new URL(url);
  const socket = connect(Number(port), hostname);
  let received = "";
  socket.on("data", (chunk: Buffer) => (received += chunk.toString()));
  socket.on("error", () => {});
  const closed = new Promise<string>((ended) => socket.on("close", () => ended(received)));
  await new Promise<void>((connected) => socket.on("connect", () => connected()));
  const body = '{"source":"venue_2","type":"crypto","symbol":"HALF","side":"open"}';
  const more = Object.entries(headers)
    .map(([name, value]) => `${name}: ${value}\r\n`)
    .join("");
  const head = `POST /v1/signals HTTP/1.1\r\nHost: ${hostname}\r\nConnection: close\r\nAuthorization: Bearer ${key}\r\n${more}Content-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n`;
  const write = (text: string) =>
    new Promise<void>((written) => socket.write(text, () => written()));
  await write(head + body.slice(0, 20));
  return { finish: () => write(body.slice(20)), closed };
}

/**
 * Returns a port that was free a moment ago. It lies below the range from which the system takes ports for
 * outgoing connections and for port 0, so that no other test is likely to take it meanwhile.
 */
export async function freePort(): Promise<number> {
  const port = 20_000 + Math.floor(Math.random() * 12_000);
  const server = createServer();
  const { promise: isFree, resolve: tell } = Promise.withResolvers<boolean>();
  server.once("error", () => tell(false)).listen(port, "127.0.0.1", () => tell(true));
  if (!(await isFree)) return freePort();
  await new Promise((closed) => server.close(closed));
  return port;
}

/** Mints a key for a desk, which is created if it does not exist; with `options`, by commands. */
export async function mintKey(
  dataDir: string,
  desk = "alpha",
  options?: CliOptions,
): Promise<{ key: string; id: string }> {
  if (options === undefined) return mintHere(dataDir, desk);
  const created = await cli(["desk", "create", desk, "--if-missing", "--data", dataDir], options);
  const minted = await cli(["key", "mint", "--desk", desk, "--json", "--data", dataDir], options);
  if (created.code + minted.code !== 0) throw new Error(created.stderr + minted.stderr);
  return JSON.parse(minted.stdout) as { key: string; id: string };
}

async function mintHere(dataDir: string, desk: string): Promise<{ key: string; id: string }> {
  const db = openDatabase(dataDir, "command");
  try {
    const { key, keyId } = await mintKeyIn(recordsIn(db).registry, desk);
    return { key, id: keyId };
  } finally {
    db.close();
  }
}

export function environment({ env }: CliOptions): Record<string, string> {
  return {
    PATH: process.env["PATH"] ?? "",
    HOME: process.env["HOME"] ?? "",
    // Only one of the servers could have its default port.
    SIGNALBOX_CONSOLE_LISTEN: "off",
    ...(preload === undefined ? {} : { LD_PRELOAD: preload }),
    ...env,
  };
}

export function spawn(args: readonly string[], options: CliOptions, timeoutMs?: number) {
  const cwd = options.cwd ?? temporaryFolder();
  if (!existsSync(cwd)) throw new Error(`${cwd} is missing`);
  const child = Bun.spawn([...(options.program ?? signalbox), ...args], {
    cwd,
    env: environment(options),
    detached: options.detached === true,
    stdin: options.stdin === undefined ? "ignore" : new TextEncoder().encode(options.stdin),
    stdout: "pipe",
    stderr: "pipe",
    killSignal: "SIGKILL",
    ...(timeoutMs === undefined ? {} : { timeout: timeoutMs }),
  });
  onCleanup(async () => {
    if (child.exitCode === null && child.signalCode === null) child.kill("SIGKILL");
    await child.exited;
  });
  return child;
}

/** Child processes: each is bounded in time, and each that is still there at the end is ended by its id. */
import { readFileSync } from "node:fs";

const RUN_MS_MAX = 300_000;
const START_MS_MAX = 15_000;
const STOP_MS_MAX = 20_000;
const ANSWER_MS_MAX = 1_000;
const POLL_MS = 10;
const LOG_CHARACTERS_SHOWN = 2_000;

type Child = Bun.Subprocess<"ignore", Bun.BunFile, Bun.BunFile>;

/** Those that run now, whatever they are: what an interrupted benchmark has to end, and by which signal. */
const running = new Map<Bun.Subprocess, NodeJS.Signals>();

export interface RunningServer {
  readonly pid: number;
  /** SIGTERM, then waits until it is gone. Throws where it fails to end well or in time. */
  readonly stop: () => Promise<void>;
}

export interface Finished {
  readonly stdout: string;
  /** All threads, user and system. */
  readonly cpu_us: number;
}

/** Runs a command to its end. Throws with its output where it fails or takes too long. */
export async function run(
  command: string[],
  { cwd = process.cwd(), msMax = RUN_MS_MAX }: { cwd?: string; msMax?: number } = {},
): Promise<Finished> {
  const child = Bun.spawn(command, {
    cwd,
    stdin: "ignore",
    stdout: "pipe",
    stderr: "pipe",
    timeout: msMax,
  });
  running.set(child, "SIGKILL");
  const [stdout, stderr, code] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
    child.exited,
  ]);
  running.delete(child);
  if (code !== 0) {
    throw new Error(`${command.join(" ")} failed (${code}):\n${lastOf(stderr + stdout)}`);
  }
  return { stdout, cpu_us: Number(child.resourceUsage()?.cpuTime.total ?? 0) };
}

/** Starts a server and waits until it is ready: until `isReady` does not throw any more. */
export async function startServer(
  command: string[],
  options: {
    isReady: () => Promise<unknown>;
    logFile: string;
    killSignal?: NodeJS.Signals;
  },
): Promise<RunningServer> {
  const { isReady, logFile, killSignal = "SIGKILL" } = options;
  const child = Bun.spawn(command, {
    stdin: "ignore",
    stdout: Bun.file(logFile),
    stderr: Bun.file(logFile),
  });
  running.set(child, killSignal);
  const fail = (what: string): Error =>
    new Error(
      `${command.join(" ")} ${what}; its output:\n${lastOf(readFileSync(logFile, "utf8"))}`,
    );
  await becomesReady(child, isReady, fail);
  return { pid: child.pid, stop: () => stop(child, fail) };
}

/** For an interrupted or failed run: nothing that was started here stays. */
export function killAll(): void {
  for (const [child, signal] of running) child.kill(signal);
  running.clear();
}

/** The same, and waits until they are gone: what comes next shall not share the machine with them. */
export async function endAll(): Promise<void> {
  const children = [...running.keys()];
  killAll();
  await Promise.all(children.map(({ exited }) => exited));
}

/** Of an HTTP server. */
export function answersHttp(port: number): () => Promise<unknown> {
  return () =>
    fetch(`http://127.0.0.1:${port}/openapi.yaml`, {
      keepalive: false,
      signal: AbortSignal.timeout(ANSWER_MS_MAX),
    });
}

async function becomesReady(
  child: Child,
  isReady: () => Promise<unknown>,
  fail: (what: string) => Error,
): Promise<void> {
  const deadline = Date.now() + START_MS_MAX;
  while (Date.now() < deadline) {
    if (child.exitCode !== null) throw fail(`ended at once (${child.exitCode})`);
    try {
      await isReady();
      return;
    } catch {
      await Bun.sleep(POLL_MS);
    }
  }
  throw fail(`was not ready within ${START_MS_MAX} ms`);
}

/** Free a moment ago; the servers are not asked for port 0, because then only their logs would tell the port. */
export function freePort(): number {
  const listener = Bun.listen({ hostname: "127.0.0.1", port: 0, socket: { data() {} } });
  listener.stop(true);
  return listener.port;
}

async function stop(child: Child, fail: (what: string) => Error): Promise<void> {
  if (child.exitCode !== null) throw fail(`ended by itself (${child.exitCode})`);
  child.kill("SIGTERM");
  const outcome = await Promise.race([child.exited, Bun.sleep(STOP_MS_MAX).then(() => "late")]);
  if (outcome === "late") throw fail(`was still there ${STOP_MS_MAX} ms after SIGTERM`);
  running.delete(child);
  if (outcome !== 0) throw fail(`ended with ${outcome}`);
}

function lastOf(text: string): string {
  return text.slice(-LOG_CHARACTERS_SHOWN);
}

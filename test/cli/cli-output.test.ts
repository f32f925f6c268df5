/** Output that cannot be written, and readers that end before a command does. */
import { expect, test } from "bun:test";
import { closeSync, constants, openSync, readSync, writeSync } from "node:fs";
import { join } from "node:path";
import { cli, mintKey, signalbox } from "../kit/cli.ts";
import { onCleanup, temporaryFolder } from "../kit/setup.ts";

/** Runs a shell command in which `signalbox` is the program; returns the shell's code and stderr. */
async function runInShell(command: string): Promise<{ code: number; stderr: string }> {
  const program = `signalbox() { ${signalbox.join(" ")} "$@"; }`;
  const child = Bun.spawn(["sh", "-c", `${program}; ${command}`], {
    env: { PATH: process.env["PATH"] ?? "" },
    stdio: ["ignore", "ignore", "pipe"],
  });
  const stderr = await new Response(child.stderr).text();
  return { code: await child.exited, stderr };
}

/** Runs the program with a pipe as stdout whose reader has already ended. */
async function runUnread(args: string): Promise<{ code: number; stderr: string }> {
  const command = `{ sleep 0.3; signalbox ${args}; echo "code $?" >&2; } | true`;
  const { stderr } = await runInShell(command);
  const [, text = "", code] = /^(.*)code (\d+)\n$/s.exec(stderr) ?? [];
  return { code: Number(code), stderr: text };
}

test("a command ends silently if the reader of its output is gone", async () => {
  const dataDir = temporaryFolder();
  await mintKey(dataDir);
  for (const args of ["--help", "--version", "key list", "key list --json", "audit", "verify"]) {
    const where = args.startsWith("--") ? "" : ` --data ${dataDir}`;
    expect({ args, ...(await runUnread(args + where)) }).toEqual({ args, code: 0, stderr: "" });
  }
});

test("a new key or link that could not be printed is a failure that says what to type", async () => {
  const dataDir = temporaryFolder();
  const { id } = await mintKey(dataDir);
  const invite = "member invite alpha a@alpha.example";
  const reset = "member reset alpha a@alpha.example";
  for (const [args, next] of [
    ["key mint --desk alpha", "key revoke \\w{26}"],
    ["key mint --desk alpha --json", "key revoke \\w{26}"],
    [`key rotate ${id}`, "key revoke \\w{26}"],
    [invite, invite],
    [reset, reset],
  ]) {
    const { code, stderr } = await runUnread(`${args} --data ${dataDir}`);
    expect({ args, code }).toEqual({ args, code: 1 });
    expect(stderr).toMatch(new RegExp(`obody has seen .* with: signalbox ${next} --data`));
    expect(stderr).not.toMatch(/\/join\/|sbk_/);
  }
});

test.each([">&-", ">/dev/null"])(
  "nothing secret is made for %s, where nobody would see it",
  async (where) => {
    const dataDir = temporaryFolder();
    const { id } = await mintKey(dataDir);
    await cli(["member", "invite", "alpha", "ada@example.com", "--data", dataDir]);
    const before = await cli(["audit", "--json", "--data", dataDir]);
    for (const args of [
      "key mint --desk alpha",
      `key rotate ${id}`,
      "member invite alpha bob@example.com",
      "member reset alpha ada@example.com",
    ]) {
      const { code, stderr } = await runInShell(`signalbox ${args} --data ${dataDir} ${where}`);
      expect(stderr).toMatch(/^signalbox: The (key|link) would be lost, because stdout is closed/);
      expect({ args, code }).toEqual({ args, code: 1 });
    }
    expect(await cli(["audit", "--json", "--data", dataDir])).toEqual(before);
  },
);

test("a command works if the reader of its stderr has gone", async () => {
  const create = `signalbox desk create alpha --data ${temporaryFolder()}`;
  const command = `{ { sleep 0.3; ${create}; echo "code $?" >&3; } 2>&1 | true; } 3>&2`;
  expect(await runInShell(command)).toEqual({ code: 0, stderr: "code 0\n" });
});

test("output that cannot be written is a failure that says what became of changes", async () => {
  const dataDir = temporaryFolder();
  await mintKey(dataDir);
  const cannot = "The output could not be written (ENOSPC).";
  for (const [args, says] of [
    ["version", `${cannot} Free space on the disk, or print to another place.`],
    ["desk create beta --json", `${cannot} Changes made by the command are kept.`],
    [
      "signals export --format csv",
      "The export is incomplete, because its output could not be written (ENOSPC)",
    ],
  ] as const) {
    const where = args === "version" ? "" : `--data ${dataDir}`;
    const { code, stderr } = await runInShell(`signalbox ${args} ${where} >/dev/full`);
    expect(stderr).toMatch(/^signalbox: [^\n]*\n$/);
    expect(stderr).toContain(says);
    expect({ args, code }).toEqual({ args, code: 1 });
  }
});

test("an export says that it is incomplete if its reader has gone", async () => {
  const dataDir = temporaryFolder();
  await mintKey(dataDir);
  const { code, stderr } = await runUnread(`signals export --format csv --data ${dataDir}`);
  expect(stderr).toContain(
    "The export is incomplete, because its output could not be written (the program that reads it has ended)",
  );
  expect(code).toBe(1);
});

/** A pipe that has no room left, and whose writing end does not block. */
function openFullPipe(): { reader: number; writer: number; bytes: number } {
  const fifo = join(temporaryFolder(), "pipe");
  expect(Bun.spawnSync(["mkfifo", fifo]).exitCode).toBe(0);
  const reader = openSync(fifo, constants.O_RDONLY | constants.O_NONBLOCK);
  const writer = openSync(fifo, constants.O_WRONLY | constants.O_NONBLOCK);
  onCleanup(() => [reader, writer].forEach(closeSync));
  let bytes = 0;
  try {
    for (;;) bytes += writeSync(writer, "x".repeat(4_096));
  } catch {
    return { reader, writer, bytes };
  }
}

test("stdout waits for its reader, and loses nothing", async () => {
  const help = await cli(["--help"]);
  const { reader, writer, bytes } = openFullPipe();
  const child = Bun.spawn([...signalbox, "--help"], { stdio: ["ignore", writer, "inherit"] });
  await Bun.sleep(1_000);
  const text = Buffer.alloc(2 * bytes);
  let length = readSync(reader, text);
  while (length < bytes) length += readSync(reader, text.subarray(length));
  expect(await child.exited).toBe(0);
  length += readSync(reader, text.subarray(length));
  expect(text.toString("utf8", bytes, length)).toBe(help.stdout);
});

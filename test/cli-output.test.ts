/** What the executable does when its output cannot be written. */
import { beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { mintKey } from "./_cli.ts";
import { buildExecutable } from "./_executable.ts";
import { temporaryFolder } from "./_setup.ts";

setDefaultTimeout(60_000);

let executable = "";

beforeAll(async () => {
  executable = await buildExecutable();
});

/** `command`: for `sh`, with `$SIGNALBOX` for the executable; its stderr is the result, with its exit code. */
async function runInShell(command: string): Promise<{ code: number; stderr: string }> {
  const child = Bun.spawn(["sh", "-c", command], {
    env: { PATH: process.env["PATH"] ?? "", SIGNALBOX: executable },
    stdio: ["ignore", "ignore", "pipe"],
  });
  const stderr = await new Response(child.stderr).text();
  return { code: await child.exited, stderr };
}

/** The code of the executable, and what it said, when its stdout is a pipe whose reader ends first. */
async function runUnread(args: string): Promise<{ code: number; stderr: string }> {
  // The reader has ended when `wait` returns: there is a pipe, and nobody at its other end.
  return runInShell(`{ sleep 0.3; "$SIGNALBOX" ${args}; echo "code $?" >&2; } | true`).then(
    ({ stderr }) => ({
      code: Number(/code (\d+)\n$/.exec(stderr)?.[1]),
      stderr: stderr.replace(/code \d+\n$/, ""),
    }),
  );
}

const quiet = { code: 0, stderr: "" };

test("a reader that has seen enough ends a command in silence", async () => {
  const dataDir = temporaryFolder();
  await mintKey(dataDir);
  for (const args of ["--help", "serve --help", "--version"]) {
    expect({ args, ...(await runUnread(args)) }).toEqual({ args, ...quiet });
  }
  for (const args of ["key list", "key list --json", "desk list", "audit", "verify"]) {
    const ended = await runUnread(`${args} --data ${dataDir}`);
    expect({ args, ...ended }).toEqual({ args, ...quiet });
  }
});

test("a new key or link that nobody has seen is a failure that says what to type", async () => {
  const dataDir = temporaryFolder();
  await mintKey(dataDir);
  const unseen: string[] = [];
  for (const end of ["", " --json"]) {
    const minted = await runUnread(`key mint --desk alpha --data ${dataDir}${end}`);
    expect(minted.code).toBe(1);
    const id = /with: signalbox key revoke (\w{26}) --data/.exec(minted.stderr)?.[1] ?? "";
    expect(id).not.toBe("");
    expect(minted.stderr).toContain("nobody has seen it");
    unseen.push(id);
  }
  const rotated = await runUnread(`key rotate ${unseen[0]} --data ${dataDir}`);
  expect(rotated.code).toBe(1);
  expect(rotated.stderr).toMatch(/with: signalbox key revoke \w{26} --data/);
  for (const command of [
    "desk invite alpha --email a@alpha.example",
    "desk reset alpha a@alpha.example",
  ]) {
    const made = await runUnread(`${command} --data ${dataDir}`);
    expect(made.code).toBe(1);
    expect(made.stderr).toContain(`with: signalbox ${command} --data ${dataDir}`);
    expect(made.stderr).not.toContain("/join/");
  }
});

test("a reader of stderr that has gone changes nothing", async () => {
  const dataDir = temporaryFolder();
  const ended = await runInShell(
    `{ { sleep 0.3; "$SIGNALBOX" desk create alpha --data ${dataDir}; echo "code $?" >&3; } 2>&1 | true; } 3>&2`,
  );
  expect(ended).toEqual({ code: 0, stderr: "code 0\n" });
});

test("output that cannot be written is a failure, said in one sentence", async () => {
  const { code, stderr } = await runInShell('"$SIGNALBOX" version >/dev/full');
  expect(stderr).toMatch(/^signalbox: The output could not be written \(ENOSPC\)[^\n]*\n$/);
  expect(code).toBe(1);
});

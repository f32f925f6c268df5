/** `signalbox send` keeps its ids on disk before it sends the first of them. */
import { expect, test } from "bun:test";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { cli, mintKey, startServe } from "../../kit/cli.ts";
import { query, signal, temporaryFolder } from "../../kit/setup.ts";
import "../kit/faults.ts";
import { underStrace } from "../kit/strace.ts";

async function prepare() {
  const { url, dataDir } = await startServe();
  const { key } = await mintKey(dataDir);
  const cwd = temporaryFolder();
  const line = `${JSON.stringify(signal)}\n`;
  writeFileSync(join(cwd, "signals"), line);
  const record = join(cwd, "strace");
  const env = { SIGNALBOX_KEY: key, SIGNALBOX_URL: url };
  const send = (...options: string[]) =>
    cli(["send", "signals"], { cwd, env, program: underStrace(["-y", ...options], { record }) });
  return {
    append: () => writeFileSync(join(cwd, "signals"), line + line),
    /** In order: fsyncs of the journal and its folder, and connections to the server. */
    steps: async (): Promise<string[]> => {
      expect((await send("-e", "trace=fsync,connect")).code).toBe(0);
      const calls = readFileSync(record, "latin1").split("\n");
      return calls.flatMap((call) => {
        if (call.includes(`htons(${new URL(url).port})`)) return ["connect"];
        const [, path] = /fsync\(\d+<([^>]+)>/.exec(call) ?? [];
        return path?.startsWith(cwd) === true ? [path.slice(cwd.length + 1)] : [];
      });
    },
    failing: () => send("-e", "trace=fsync", "-e", "inject=fsync:error=EIO"),
    stored: () => query(dataDir, "SELECT client_signal_id FROM signals").length,
  };
}

test("the journal and its folder are synced before the first connection, also when it is used again", async () => {
  const { steps, append } = await prepare();
  const untilConnected = ["signals.journal", "", "connect"];
  expect((await steps()).slice(0, 3)).toEqual(untilConnected);
  expect((await steps()).slice(0, 3)).toEqual(untilConnected);
  append();
  expect((await steps()).slice(0, 4)).toEqual([
    expect.stringMatching(/^\.signals\.journal\.[0-9a-f]{16}\.signalbox-partial$/),
    ...untilConnected,
  ]);
});

test("a journal that cannot be synced stops the run, and the next one too", async () => {
  const { failing, stored } = await prepare();
  for (const _ of [1, 2]) {
    const { code, stderr } = await failing();
    expect(stderr).toContain("signals.journal cannot be written (EIO), and nothing was sent");
    expect(code).toBe(1);
  }
  expect(stored()).toBe(0);
});

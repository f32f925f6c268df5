/** What the server does when the console's thread crashes. */
import { expect, test } from "bun:test";
import { pino } from "pino";
import { ActivityRecorder } from "../../../src/console/pages/activity/recorder.ts";
import type { ServerStatus } from "../../../src/ops/server.ts";
import { type ConsoleOptions, ConsoleThread } from "../../../src/console/server/thread.ts";
import { withStorage } from "../../../src/store/open.ts";
import { onCleanup, temporaryFolder, until } from "../../kit/setup.ts";

test("a console that crashes is started again, at the same address", async () => {
  const workers: Worker[] = [];
  const Original = globalThis.Worker;
  globalThis.Worker = class extends Original {
    constructor(url: string | URL) {
      super(url);
      workers.push(this);
    }
  };
  onCleanup(() => void (globalThis.Worker = Original));
  const storage = temporaryFolder();
  await withStorage(storage, () => {}, { create: true });
  const options: ConsoleOptions = {
    listen: { host: "127.0.0.1", port: 23_917 },
    dataDir: storage,
    storage,
    consoleUrl: null,
    publicUrl: "http://127.0.0.1:8080",
    notices: { allow: [], mail: null },
    certificate: null,
    trustedProxies: [],
    connectionsMax: 10,
    connectionsTotal: 10,
    stopTimeoutMs: 100,
    logLevel: "silent",
  };
  const lines: string[] = [];
  const log = pino({ base: null }, { write: (line) => void lines.push(line) });
  const thread = await ConsoleThread.start(options, log, new ActivityRecorder());
  onCleanup(() => thread.close());
  thread.watch(
    () => null,
    () => ({}) as ServerStatus,
  );
  for (let crashes = 0; crashes < 2; crashes += 1) {
    // An error that nothing catches.
    workers.at(-1)?.postMessage(null);
    await until(() => thread.problem !== null);
    expect(thread.problem).toStartWith("it crashed: ");
    await until(() => thread.problem === null);
    expect((await fetch(`${thread.url}/sign-in`)).status).toBe(200);
  }
  expect(lines.map((line) => (JSON.parse(line) as { msg: string }).msg)).toEqual([
    "the console crashed; it is started again",
    "the console runs again",
    "the console crashed; it is started again",
    "the console runs again",
  ]);
});

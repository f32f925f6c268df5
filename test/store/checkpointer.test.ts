import { expect, spyOn, test } from "bun:test";
import { readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { Checkpointer } from "../../src/store/sqlite/append/checkpointer.ts";
import { DATABASE_NAME } from "../../src/store/sqlite/files/folder.ts";
import { openDatabase } from "../../src/store/sqlite/files/open.ts";
import { openServerStorage } from "../../src/store/sqlite/store.ts";
import { mintKey, startServe } from "../kit/cli.ts";
import { startLoad } from "../kit/load.ts";
import { closedOnce, onCleanup, query } from "../kit/setup.ts";
import { noEvents } from "../storage/start.ts";
import { prepare } from "./_submissions.ts";
import { recordsIn } from "../kit/records.ts";

const SIGNALS = 20_000;

/** A store beside a connection that stays open, so that the log is not removed with the last one. */
async function open(externalCheckpoints: boolean) {
  const { dataDir, submit } = await prepare();
  const fatal: string[] = [];
  const store = await openServerStorage(
    { dataDir, externalCheckpoints },
    {
      ...noEvents,
      onFatal: (reason) => fatal.push(reason),
      onProblem: ({ reason }) => fatal.push(reason),
    },
  );
  const close = closedOnce(() => store.close());
  const append = () => store.append(submit({ signal: { client_signal_id: crypto.randomUUID() } }));
  const appendMany = async (): Promise<void> => {
    for (let sent = 0; sent < SIGNALS; sent += 500) {
      await Promise.all(Array.from({ length: 500 }, () => append()));
    }
  };
  const size = (suffix: "" | "-wal"): number =>
    statSync(join(dataDir, DATABASE_NAME) + suffix).size;
  return { dataDir, append, appendMany, size, close, fatal };
}

test("a checkpointer that fails before the store is open ends the server with its reason", async () => {
  const start = Checkpointer.start.bind(Checkpointer);
  const starting = spyOn(Checkpointer, "start").mockImplementation((where, events) => {
    events.onFatal("it failed early");
    return start(where, events);
  });
  onCleanup(() => starting.mockRestore());
  expect((await open(false)).fatal).toEqual(["it failed early"]);
});

/** Counts how often the log started again (https://sqlite.org/fileformat2.html#walformat). */
function logNumber(dataDir: string): number {
  return readFileSync(`${join(dataDir, DATABASE_NAME)}-wal`).readUInt32BE(12);
}

test("the log is copied into the database while signals arrive, and is then reused", async () => {
  const { dataDir, append, appendMany, size, close, fatal } = await open(false);
  const [before, logBefore] = [size(""), logNumber(dataDir)];
  await appendMany();
  // A commit by itself copies the log only at 256 MiB; this one is far smaller.
  while (logNumber(dataDir) === logBefore) await append();
  expect(size("")).toBeGreaterThan(before);
  expect(size("-wal")).toBeLessThan(128 * 1024 * 1024);
  expect(fatal).toEqual([]);
  expect(query(dataDir, "PRAGMA integrity_check")).toEqual([{ integrity_check: "ok" }]);
  await close();
  expect(size("-wal")).toBe(0);
});

test("with external checkpoints nothing of ours touches the log: no commit, no command, no stop", async () => {
  const { dataDir, append, appendMany, size, close, fatal } = await open(true);
  const before = size("");
  await appendMany();
  await append();
  const command = openDatabase(dataDir, "command");
  await recordsIn(command).registry.createDesk("beta", { ifMissing: false });
  command.close();
  const logSize = size("-wal");
  await close();
  expect(size("")).toBe(before);
  expect(size("-wal")).toBe(logSize);
  // SQLite by itself would have had the command copy it.
  expect(logSize).toBeGreaterThan(1_000 * 4_096);
  expect(fatal).toEqual([]);
  expect(query<{ n: number }>(dataDir, "SELECT count(*) AS n FROM signals")).toEqual([
    { n: SIGNALS + 1 },
  ]);
});

test("with external checkpoints the log outlives its last user: a server that stops, a command after it", async () => {
  const server = await startServe(["--external-checkpoints"]);
  const { dataDir, url } = server;
  const { key } = await mintKey(dataDir);
  const load = startLoad({ url, key });
  await load.more(300, 201);
  await load.end();
  const log = `${join(dataDir, DATABASE_NAME)}-wal`;
  const before = readFileSync(log);
  server.kill("SIGTERM");
  expect(await server.exited).toBe(0);
  expect(readFileSync(log).equals(before)).toBe(true);
  await mintKey(dataDir, "later");
  const after = readFileSync(log);
  expect(after.subarray(0, before.length).equals(before)).toBe(true);
  expect(after.length).toBeGreaterThan(before.length);
});

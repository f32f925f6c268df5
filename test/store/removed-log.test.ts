/** The write-ahead log is deleted under a server; test/faults/disk/removed-log.test.ts does it under load. */
import { expect, test } from "bun:test";
import { mkdirSync, rmdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { openDatabase } from "../../src/store/sqlite/files/open.ts";
import { openServerStorage } from "../../src/store/sqlite/store.ts";
import { onCleanup, query, rejection } from "../kit/setup.ts";
import { noEvents } from "../storage/start.ts";
import { prepare } from "./_submissions.ts";

test("a change in a database whose log was deleted meanwhile is refused", async () => {
  const { dataDir, db, registry } = await prepare();
  const keys = () => db.query("SELECT * FROM api_keys").all();
  const before = keys();
  const [key] = await registry.listKeys("alpha");
  rmSync(join(dataDir, "signalbox.db-wal"));
  expect(String(await rejection(registry.revokeKey(key?.id ?? "")))).toContain(
    "The database's log was removed meanwhile, and nothing was changed",
  );
  expect(keys()).toEqual(before);
});

/** A server, what it says at its end, and its first problem. */
async function start() {
  const { dataDir, submit } = await prepare();
  const [ended, hindered] = [Promise.withResolvers<string>(), Promise.withResolvers<string>()];
  const store = await openServerStorage(
    { dataDir, externalCheckpoints: false },
    { ...noEvents, onFatal: ended.resolve, onProblem: ({ reason }) => hindered.resolve(reason) },
  );
  onCleanup(() => store.close());
  return { dataDir, submit, store, ended: ended.promise, hindered: hindered.promise };
}

test("a server whose log is deleted copies it into the database and ends, and commands wait for that", async () => {
  const { dataDir, submit, store, ended } = await start();
  for (const end of ["-wal", "-shm"]) rmSync(join(dataDir, `signalbox.db${end}`));
  const { id } = await store.append(submit());
  expect(() => openDatabase(dataDir, "command")).toThrow(
    "was removed while another process has the database open",
  );
  expect(await ended).toMatch(
    /^the write-ahead log was removed or replaced while the server ran: .*; it was copied into the database, so no acknowledged signal is lost$/,
  );
  expect(query(dataDir, "SELECT id FROM signals")).toEqual([{ id }]);
  expect(await rejection(store.append(submit()))).toMatchObject({ code: "unavailable" });
});

test("a server that cannot set another's log aside tries again, and loses nothing", async () => {
  const { dataDir, submit, store, ended, hindered } = await start();
  const { id } = await store.append(submit());
  for (const end of ["-wal", "-shm"]) rmSync(join(dataDir, `signalbox.db${end}`));
  const index = join(dataDir, "signalbox.db-shm");
  mkdirSync(index);
  expect(await hindered).toMatch(
    /^the removed log is not copied into the database yet: .*; do not stop the server: it has the only copy$/,
  );
  rmdirSync(index);
  expect(await ended).toContain("no acknowledged signal is lost");
  expect(query(dataDir, "SELECT id FROM signals")).toEqual([{ id }]);
});

import { expect, setDefaultTimeout, test } from "bun:test";
import { closeSync, openSync, readFileSync, statSync, writeSync } from "node:fs";
import { join } from "node:path";
import { DATABASE_NAME } from "../src/store/sqlite/folder.ts";
import { findLogDamage } from "../src/store/sqlite/log-damage.ts";
import { LOG_BYTES, reserveLogSpace } from "../src/store/sqlite/log-space.ts";
import { openDatabase } from "../src/store/sqlite/open.ts";
import { signalbox, mintKey, startServe } from "./_cli.ts";
import { startLoad } from "./_load.ts";
import { onCleanup, query, temporaryFolder } from "./_setup.ts";

setDefaultTimeout(60_000);

function open() {
  const dataDir = join(temporaryFolder(), "data");
  const db = openDatabase(dataDir, "command");
  onCleanup(() => db.close());
  return { dataDir, db, log: `${join(dataDir, DATABASE_NAME)}-wal` };
}

const names = (dataDir: string) =>
  query<{ name: string }>(dataDir, "SELECT name FROM desks ORDER BY id").map(({ name }) => name);

const addDesk = (db: ReturnType<typeof openDatabase>, name: string) =>
  db.query("INSERT INTO desks (name, created_at) VALUES (?, 0)").run(name);

test("commits go into the room that was made: the file stays as long as it is", () => {
  const { dataDir, db, log } = open();
  addDesk(db, "before");
  const before = readFileSync(log);
  reserveLogSpace(db);
  const whole = readFileSync(log);
  expect(whole.length).toBe(LOG_BYTES);
  expect(whole.subarray(0, before.length).equals(before)).toBe(true);
  expect(whole.subarray(before.length).every((byte) => byte === 0)).toBe(true);

  addDesk(db, "after");
  expect(statSync(log).size).toBe(LOG_BYTES);
  expect(names(dataDir)).toEqual(["before", "after"]);
  expect(findLogDamage(log)).toBeNull();
});

test("a log that is long enough is left as it is", () => {
  const { db, log } = open();
  addDesk(db, "alpha");
  reserveLogSpace(db);
  const fd = openSync(log, "r+");
  writeSync(fd, new Uint8Array(1), 0, 1, LOG_BYTES);
  closeSync(fd);
  reserveLogSpace(db);
  expect(statSync(log).size).toBe(LOG_BYTES + 1);
});

test("who has the lock for writing is not disturbed, and not waited for without end", () => {
  const { dataDir, db, log } = open();
  addDesk(db, "alpha");
  const other = openDatabase(dataDir, "command");
  onCleanup(() => other.close());
  db.run("PRAGMA busy_timeout = 10");
  other.run("BEGIN IMMEDIATE");
  const { size } = statSync(log);
  expect(() => reserveLogSpace(db)).toThrow("database is locked");
  expect(statSync(log).size).toBe(size);
  other.run("ROLLBACK");
  reserveLogSpace(db);
  expect(statSync(log).size).toBe(LOG_BYTES);
});

test("a server makes room at its start; killed, all of it is still there", async () => {
  const server = await startServe([]);
  const { dataDir, url } = server;
  const { key } = await mintKey(dataDir);
  const load = startLoad({ url, key });
  await load.more(200, 201);
  server.kill("SIGKILL");
  await server.exited;
  const stored = (await load.end()).filter(({ outcome }) => outcome === 201).length;
  const log = join(dataDir, `${DATABASE_NAME}-wal`);
  expect(statSync(log).size).toBe(LOG_BYTES);
  expect(findLogDamage(log)).toBeNull();
  const [row] = query<{ n: number }>(dataDir, "SELECT count(*) AS n FROM signals");
  expect(row?.n).toBeGreaterThanOrEqual(stored);
});

test("a folder that was left with nothing but room can be served from again", async () => {
  const dataDir = join(temporaryFolder(), "data");
  const first = await startServe([], { dataDir, program: signalbox });
  expect(statSync(join(dataDir, `${DATABASE_NAME}-wal`)).size).toBe(LOG_BYTES);
  first.kill("SIGKILL");
  await first.exited;
  const second = await startServe([], { dataDir, program: signalbox });
  const { key } = await mintKey(dataDir);
  const load = startLoad({ url: second.url, key });
  await load.more(20, 201);
  await load.end();
  second.kill("SIGTERM");
  expect(await second.exited).toBe(0);
});

test("where a file may not be so long the log is not, and the server serves", async () => {
  const limited = ["bash", "-c", `trap '' XFSZ; ulimit -f 8192; exec "$@"`, "bash", ...signalbox];
  const server = await startServe([], { program: limited });
  const { dataDir, url } = server;
  const { key } = await mintKey(dataDir);
  const load = startLoad({ url, key });
  await load.more(20, 201);
  await load.end();
  expect(statSync(join(dataDir, `${DATABASE_NAME}-wal`)).size).toBeLessThanOrEqual(8_192 * 1_024);
  server.kill("SIGTERM");
  expect(await server.exited).toBe(0);
});

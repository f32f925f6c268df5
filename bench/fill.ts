/**
 * Makes a data folder with N stored signals, and the file "FOLDER.key" with a key of their desk.
 * Usage: bun bench/fill.ts FOLDER SIGNALS v7|v4
 */
import { Database } from "bun:sqlite";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { BlockWriter } from "../src/store/sqlite/append/blocks.ts";
import { DATABASE_NAME } from "../src/store/sqlite/files/folder.ts";
import { openDatabase } from "../src/store/sqlite/files/open.ts";
import { hashSignals, NO_HASH, type Records, recordsIn } from "../test/kit/records.ts";

/** Signals inserted without the unique index, which is then created by sorting: much faster for random ids. */
const SHARE_BEFORE_INDEX = 0.6;
/** The whole index of 10 million signals, while it is filled. */
const CACHE_KIB = 1_048_576;
const UNIQUE_INDEX = "signals_client_signal_id";

const EPOCH_MS = 1_700_000_000_000;
const UUID_TAIL = `substr(lower(hex(randomblob(2))), 2) || '-' || substr('89ab', 1 + (random() & 3), 1)
  || substr(lower(hex(randomblob(2))), 2) || '-' || lower(hex(randomblob(6)))`;
const UUID_V7 = `printf('%08x-%04x-7', (${EPOCH_MS} + n / 10) >> 16, (${EPOCH_MS} + n / 10) & 65535) || ${UUID_TAIL}`;
const UUID_V4 = `lower(hex(randomblob(4))) || '-' || lower(hex(randomblob(2))) || '-4' || ${UUID_TAIL}`;

const [folder = "", count = "", kind = ""] = process.argv.slice(2);
const signals = Number(count);
const { key, record } = await createKey();
const db = new Database(join(folder, DATABASE_NAME), { readwrite: true });
// A folder that is not filled to its end is thrown away: nothing has to be durable before the end.
db.run("PRAGMA journal_mode = MEMORY");
db.run("PRAGMA synchronous = OFF");
db.run(`PRAGMA cache_size = -${CACHE_KIB}`);
const before = Math.floor(signals * SHARE_BEFORE_INDEX);
const indexSql = dropUniqueIndex();
insertSignals(1, before);
db.run(indexSql);
// A new index has full pages, one that grew has not: the rest makes it like one that grew.
insertSignals(before + 1, signals);
new BlockWriter(db).add([], signals);
db.run("PRAGMA synchronous = FULL");
db.run("PRAGMA journal_mode = WAL");
db.close();
writeFileSync(`${folder}.key`, key, { mode: 0o600 });

async function createKey(): Promise<ReturnType<Records["registry"]["mintKey"]>> {
  const database = openDatabase(folder, "command");
  const registry = recordsIn(database).registry;
  await registry.createDesk("bench", { ifMissing: false });
  const minted = await registry.mintKey({
    scope: "send",
    desk: "bench",
    label: null,
    expiresInMs: null,
  });
  database.close();
  return minted;
}

/** Returns the statement that creates it again, as `signalbox verify` wants it. */
function dropUniqueIndex(): string {
  const row = db
    .query<{ sql: string }, [string]>("SELECT sql FROM sqlite_schema WHERE name = ?")
    .get(UNIQUE_INDEX);
  if (row === null) throw new Error(`${UNIQUE_INDEX} is not in schema.sql`);
  db.run(`DROP INDEX ${UNIQUE_INDEX}`);
  return row.sql;
}

/** Like the load's own (signal.ts). Times and ids rise, ten signals per millisecond, and are older than those of new signals. */
function insertSignals(from: number, to: number): void {
  db.query(
    `WITH RECURSIVE numbers (n) AS (SELECT ?1 UNION ALL SELECT n + 1 FROM numbers WHERE n < ?2)
       INSERT INTO signals (seq, id, desk_id, key_id, received_at, client_signal_id, source, type, symbol, side,
                            direction, price, quantity, signal_time, metadata, hash)
       SELECT n, printf('01HF7%021d', n), 1, ?3, ${EPOCH_MS} + n / 10, ${kind === "v7" ? UUID_V7 : UUID_V4},
         'venue_2', 'crypto', 'BTC/USDT', 'open', 'long', 64250.5, 0.25, 1790000000000,
         '{"take_profit":66000,"stop_loss":63000}', ${NO_HASH}
       FROM numbers`,
  ).run(from, to, record.id);
  hashSignals(db, from - 1);
}

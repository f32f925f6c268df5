/**
 * Makes a data folder with so many stored signals, and the file "key" beside it with a key of theirs.
 * Usage: bun bench/fill.ts FOLDER SIGNALS
 */
import type { Database } from "bun:sqlite";
import { writeFileSync } from "node:fs";
import { openDatabase } from "../src/store/sqlite/open.ts";
import { SqliteRegistry } from "../src/store/sqlite/registry.ts";

/** In one transaction: bounds the log. */
const ROWS_A_TRANSACTION = 500_000;

const [folder = "", count = ""] = process.argv.slice(2);
const signals = Number(count);
const db = openDatabase(folder, "writer");
const registry = new SqliteRegistry(db);
registry.createDesk("bench", { ifMissing: false });
const { key, record } = registry.mintKey({ desk: "bench", label: null, expiresInMs: null });
db.run("PRAGMA synchronous = OFF");
db.run("PRAGMA cache_size = -262144");
// Else all of it would be on the disk twice for a while.
db.run("PRAGMA wal_autocheckpoint = 16384");
for (let first = 1; first <= signals; first += ROWS_A_TRANSACTION) {
  insertSignals(db, record.id, first, Math.min(signals, first + ROWS_A_TRANSACTION - 1));
}
db.run("PRAGMA synchronous = FULL");
db.run("PRAGMA wal_checkpoint(TRUNCATE)");
db.close();
writeFileSync(`${folder}.key`, key, { mode: 0o600 });

/** As the load's own (signal.ts), with random UUID v4 ids; the ULIDs rise, and are older than any new one. */
function insertSignals(database: Database, keyId: string, from: number, to: number): void {
  database
    .query(
      `WITH RECURSIVE numbers (n) AS (SELECT ?1 UNION ALL SELECT n + 1 FROM numbers WHERE n < ?2)
       INSERT INTO signals (seq, id, desk_id, key_id, received_at, client_signal_id, source, type, symbol, side,
                            direction, price, quantity, signal_time, metadata)
       SELECT n, printf('01HF7%021d', n), 1, ?3, 1700000000000 + n / 10,
         printf('%s-%s-4%s-%s%s-%s', lower(hex(randomblob(4))), lower(hex(randomblob(2))),
           substr(lower(hex(randomblob(2))), 2), substr('89ab', 1 + (random() & 3), 1),
           substr(lower(hex(randomblob(2))), 2), lower(hex(randomblob(6)))),
         'venue_2', 'crypto', 'BTC/USDT', 'open', 'long', 64250.5, 0.25, 1790000000000,
         '{"take_profit":66000,"stop_loss":63000}'
       FROM numbers`,
    )
    .run(from, to, keyId);
}

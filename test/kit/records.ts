/** The records of a database, and hashes for signals that a test or a benchmark inserts or changes by SQL. */
import type { Database } from "bun:sqlite";
import { type HashedSignal, hashOf } from "../../src/domain/signal/hash.ts";
import { records, type Records } from "../../src/store/records/records.ts";
import { sqliteSql } from "../../src/store/sqlite/sql.ts";

export type { Records };

export function recordsIn(db: Database, now: () => number = Date.now): Records {
  return records(sqliteSql({ reader: db, now }));
}

const CHUNK_ROWS = 1_000;

/** In SQL that inserts signals, until {@link hashSignals}. */
export const NO_HASH = "zeroblob(8)";

/** Gives every signal above this `seq` the hash of what it has now. */
export function hashSignals(db: Database, after = 0): void {
  const rows = db.query<HashedSignal & { seq: number }, [number, number]>(
    "SELECT * FROM signals NOT INDEXED WHERE seq > ? ORDER BY seq LIMIT ?",
  );
  const update = db.query("UPDATE signals SET hash = ? WHERE seq = ?");
  for (let last = after; ;) {
    const chunk = rows.all(last, CHUNK_ROWS);
    db.transaction(() => chunk.forEach((row) => update.run(hashOfRow(row), row.seq)))();
    last = chunk.at(-1)?.seq ?? last;
    if (chunk.length < CHUNK_ROWS) return;
  }
}

export function hashOfRow(row: Omit<HashedSignal, "hash">): Uint8Array {
  const { id, desk_id: deskId, key_id: keyId, received_at: receivedAt } = row;
  return hashOf(id, { deskId, keyId, receivedAt, signal: row });
}

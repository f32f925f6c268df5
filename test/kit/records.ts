/** The records of a database. */
import type { Database } from "bun:sqlite";
import { records, type Records } from "../../src/store/records/records.ts";
import { sqliteSql } from "../../src/store/sqlite/sql.ts";

export type { Records };

export function recordsIn(db: Database, now: () => number = Date.now): Records {
  return records(sqliteSql({ reader: db, now }));
}

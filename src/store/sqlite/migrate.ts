/**
 * Versions of the database. `schema.sql` is the newest one, whole; `upgrades[i]` takes a database of
 * version i + 1 to version i + 2. To change the schema: edit `schema.sql`, and append the upgrade, its text the same to the letter: SQLite keeps it, and `verify` compares it.
 */
import type { Database } from "bun:sqlite";
import schemaSql from "../../../schema.sql" with { type: "text" };
import { inTransaction } from "./transaction.ts";
import upgrade2 from "./upgrades/2.sql" with { type: "text" };
import upgrade3 from "./upgrades/3.sql" with { type: "text" };
import upgrade4 from "./upgrades/4.sql" with { type: "text" };
import upgrade5 from "./upgrades/5.sql" with { type: "text" };

/** "SBOX": marks the file as ours, in the header field that SQLite keeps for it. */
export const APPLICATION_ID = 0x53424f58;

export interface Schema {
  /** Makes the newest version in an empty database. */
  readonly sql: string;
  readonly upgrades: readonly string[];
}

export const currentSchema: Schema = {
  sql: schemaSql,
  upgrades: [upgrade2, upgrade3, upgrade4, upgrade5],
};

export function schemaVersion(schema: Schema): number {
  return schema.upgrades.length + 1;
}

export function readVersion(db: Database): number {
  const row = db.query("PRAGMA user_version").get() as { user_version: number };
  return row.user_version;
}

export function readApplicationId(db: Database): number {
  return (db.query("PRAGMA application_id").get() as { application_id: number }).application_id;
}

/**
 * Brings a database to the newest version in one transaction: all of it or none. The version is read
 * again inside the transaction, because two processes may start at once.
 */
export function migrate(db: Database, schema: Schema = currentSchema): void {
  const target = schemaVersion(schema);
  if (readVersion(db) === target) return;
  inTransaction(db, () => {
    const version = readVersion(db);
    if (version === 0) db.run(schema.sql);
    else for (const upgrade of schema.upgrades.slice(version - 1)) db.run(upgrade);
    db.run(`PRAGMA user_version = ${target}`);
  });
}

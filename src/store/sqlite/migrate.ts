/**
 * Versions of the database. `schema.sql` creates the newest one, `upgrades/1.sql` the first one, and
 * `upgrades[i]` upgrades version i + 1 to version i + 2. To change the schema: edit `schema.sql`, and
 * append the upgrade with the same statements: SQLite keeps their text, and `schema.ts` compares it.
 */
import type { Database } from "bun:sqlite";
import schemaSql from "../../../schema.sql" with { type: "text" };
import { inTransaction } from "./transaction.ts";
import version1 from "./upgrades/1.sql" with { type: "text" };
import upgrade2 from "./upgrades/2.sql" with { type: "text" };
import upgrade3 from "./upgrades/3.sql" with { type: "text" };
import upgrade4 from "./upgrades/4.sql" with { type: "text" };
import upgrade5 from "./upgrades/5.sql" with { type: "text" };
import upgrade6 from "./upgrades/6.sql" with { type: "text" };
import upgrade7 from "./upgrades/7.sql" with { type: "text" };

/** "SBOX": marks the file as ours, in the header field that SQLite keeps for it. */
export const APPLICATION_ID = 0x53424f58;

export interface Schema {
  /** Makes the newest version in an empty database. */
  readonly sql: string;
  /** Creates version 1. */
  readonly first: string;
  readonly upgrades: readonly string[];
}

export const currentSchema: Schema = {
  sql: schemaSql,
  first: version1,
  upgrades: [upgrade2, upgrade3, upgrade4, upgrade5, upgrade6, upgrade7],
};

export function schemaVersion(schema: Schema): number {
  return schema.upgrades.length + 1;
}

export function readVersion(db: Database, database: "main" | "source" = "main"): number {
  const row = db.query(`PRAGMA ${database}.user_version`).get() as { user_version: number };
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

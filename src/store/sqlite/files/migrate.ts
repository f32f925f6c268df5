/**
 * Versions of the database. `schema.sql` creates the latest one; `upgrades[i]` upgrades version i + 1 to version
 * i + 2. To change the schema once a version is released: keep `schema.sql` as it is as `first`, edit it, and append
 * the upgrade with the same statements: SQLite keeps their text, and `schema.ts` compares it.
 */
import type { Database } from "bun:sqlite";
import schemaSql from "../../../../schema.sql" with { type: "text" };
import { inTransaction } from "./transaction.ts";

/** "SBX1": marks the file as ours, in the header field that SQLite keeps for it. */
export const APPLICATION_ID = 0x53425831;
/** "SBOX": files of the builds before the first release, which no version of signalbox reads. */
export const UNRELEASED_APPLICATION_ID = 0x53424f58;

export interface Schema {
  /** Creates the newest version. */
  readonly sql: string;
  /** Creates version 1. */
  readonly first: string;
  readonly upgrades: readonly string[];
}

export const currentSchema: Schema = { sql: schemaSql, first: schemaSql, upgrades: [] };

export function schemaVersion(schema: Schema): number {
  return schema.upgrades.length + 1;
}

export function readVersion(db: Database): number {
  return (db.query("PRAGMA user_version").get() as { user_version: number }).user_version;
}

export function readApplicationId(db: Database): number {
  return (db.query("PRAGMA application_id").get() as { application_id: number }).application_id;
}

/**
 * Upgrades a database to the newest version in one transaction. Reads the version again inside it, because
 * two processes may start at once.
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

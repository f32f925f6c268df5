/** Puts a copy in the place of a data folder's database, and keeps what was there. */
import { Database } from "bun:sqlite";
import { existsSync, renameSync, rmSync, statSync } from "node:fs";
import { dirname } from "node:path";
import { messageOf } from "../../domain/errors.ts";
import { syncPath } from "./copy.ts";
import { restoringPath } from "./folder.ts";
import { currentSchema, migrate, readVersion, schemaVersion } from "./migrate.ts";
import { openForReading } from "./read.ts";

export interface Restored {
  /** Where the database is that was there before, or null. */
  readonly kept: string | null;
  /** What became of the keys of the database that was there before, or null without one. */
  readonly keys: KeysTaken | null;
}

/** `failure`: why its keys could not be taken over, so that they are as the backup has them. */
export type KeysTaken =
  | { readonly minted: number; readonly revoked: number; readonly failure: null }
  | { readonly failure: string };

/**
 * `restoringPath(path)` holds the copy, verified; the folder's lock is held. A backup knows nothing of
 * the keys that were minted, rotated or revoked after it: where the database before can be read, they
 * are taken over, for a revoked key must not come back to life. If this is cut short, `openDatabase`
 * refuses the folder until it is run again.
 */
export function putInPlace(path: string, stamp: string): Restored {
  const restoring = restoringPath(path);
  const keys = existsSync(path) ? takeOverKeys(path, restoring) : null;
  const kept = keep(path, `${path}.before-${stamp}`);
  syncPath(restoring);
  renameSync(restoring, path);
  syncPath(dirname(path));
  return { kept, keys };
}

/** The log goes with its database; the index of the log is made anew by whoever opens it. */
function keep(path: string, name: string): string | null {
  const isThere = existsSync(path);
  if (isThere) renameSync(path, name);
  const log = `${path}-wal`;
  if (existsSync(log) && statSync(log).size > 0) renameSync(log, `${name}-wal`);
  for (const rest of [log, `${path}-shm`]) rmSync(rest, { force: true });
  return isThere ? name : null;
}

interface Registered {
  readonly desks: readonly Row[];
  readonly keys: readonly Row[];
}
type Row = Record<string, string | number | Uint8Array | null> & { readonly id: string | number };

function takeOverKeys(path: string, restoring: string): KeysTaken {
  try {
    const before = readRegistered(path);
    return change(restoring, (db) => mergeKeys(db, before));
  } catch (error) {
    return { failure: messageOf(error) };
  }
}

function readRegistered(path: string): Registered {
  const db = openForReading(path);
  try {
    if (readVersion(db) !== schemaVersion(currentSchema))
      throw new Error("it is of another version");
    return registered(db);
  } finally {
    db.close();
  }
}

function registered(db: Database): Registered {
  return {
    desks: db.query<Row, []>("SELECT * FROM desks").all(),
    keys: db.query<Row, []>("SELECT * FROM api_keys").all(),
  };
}

function mergeKeys(db: Database, before: Registered): KeysTaken {
  const restored = registered(db);
  const desks = new Map(before.desks.map((desk) => [desk.id, desk]));
  const isSame = restored.desks.every(
    (desk) => desks.get(desk.id)?.["created_at"] === desk["created_at"],
  );
  if (!isSame) return { failure: "the backup is of another server" };
  const keys = new Map(restored.keys.map((key) => [key.id, key]));
  upsert(db, "desks", before.desks);
  upsert(db, "api_keys", before.keys);
  const isRevokedSince = ({ id, revoked_at }: Row): boolean =>
    revoked_at !== null && keys.get(id)?.["revoked_at"] === null;
  return {
    minted: before.keys.filter(({ id }) => !keys.has(id)).length,
    revoked: before.keys.filter(isRevokedSince).length,
    failure: null,
  };
}

function upsert(db: Database, table: string, rows: readonly Row[]): void {
  const columns = Object.keys(rows[0] ?? {});
  const values = columns.map(() => "?").join(", ");
  const updates = columns.map((column) => `${column} = excluded.${column}`).join(", ");
  for (const row of rows) {
    db.query(
      `INSERT INTO ${table} (${columns.join(", ")}) VALUES (${values}) ON CONFLICT (id) DO UPDATE SET ${updates}`,
    ).run(...Object.values(row));
  }
}

function change<T>(path: string, work: (db: Database) => T): T {
  const db = new Database(path, { create: false, readwrite: true, strict: true });
  try {
    db.run("PRAGMA foreign_keys = ON");
    migrate(db);
    db.run("BEGIN IMMEDIATE");
    const result = work(db);
    db.run("COMMIT");
    return result;
  } catch (error) {
    if (db.inTransaction) db.run("ROLLBACK");
    throw error;
  } finally {
    db.close();
  }
}

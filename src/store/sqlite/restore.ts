/** Puts a copy in the place of a data folder's database, and keeps what was there. */
import { Database } from "bun:sqlite";
import {
  closeSync,
  existsSync,
  openSync,
  readdirSync,
  renameSync,
  rmSync,
  statSync,
} from "node:fs";
import { basename, dirname, join } from "node:path";
import { messageOf, UserError } from "../../domain/errors.ts";
import { syncPath } from "./copy.ts";
import { DamageError, explainFailure, isAboutOneRow } from "./failures.ts";
import { restoringPath } from "./folder.ts";
import { currentSchema, migrate, readVersion, schemaVersion } from "./migrate.ts";
import { openForReading } from "./read.ts";
import { inTransaction } from "./transaction.ts";
import { verifyDatabase } from "./verify.ts";

export interface Restore {
  readonly path: string;
  /** The database that was there: in its place, or already moved away by a restore that was cut short. */
  readonly before: string | null;
}

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
 * To be called before a copy is made at `restoringPath(path)`, with the folder's lock held. From here on
 * `openDatabase` refuses a folder without a database, until a restore has come to its end.
 */
export function beginRestore(path: string): Restore {
  const restoring = restoringPath(path);
  const before = hasContent(path) ? path : findMovedAway(path);
  // Of a restore that was cut short: SQLite would play it back into the new copy.
  rmSync(`${restoring}-journal`, { force: true });
  if (before !== path && !existsSync(restoring)) {
    closeSync(openSync(restoring, "wx", 0o600));
    syncPath(dirname(path));
  }
  return { path, before };
}

/** Where no copy could be made: the folder is as it was. */
export function giveUpRestore({ path }: Restore): void {
  const restoring = restoringPath(path);
  if (!hasContent(restoring)) rmSync(restoring, { force: true });
}

/**
 * `restoringPath(path)` holds the copy. A backup knows nothing of the keys that were minted, rotated or
 * revoked after it: where the database before can be read, they are taken over, for a revoked key must
 * not come back to life. If this is cut short, the folder has the database before, or is refused by
 * `openDatabase` until a restore is run again, which takes up what this one has moved away.
 */
export function putInPlace({ path, before }: Restore, stamp: string): Restored {
  const restoring = restoringPath(path);
  const kept = before === path ? unusedName(`${path}.before-${stamp}`) : before;
  // Its log has not followed it yet, perhaps; without any database, a log is kept all the same.
  if (before !== path) keepLog(path, kept ?? unusedName(`${path}.before-${stamp}`));
  const keys = before === null ? null : takeOverKeys(before, restoring);
  refuseUnsound(restoring);
  if (before === path && kept !== null) {
    renameSync(path, kept);
    keepLog(path, kept);
  }
  for (const rest of [`${path}-wal`, `${path}-shm`]) rmSync(rest, { force: true });
  syncPath(restoring);
  renameSync(restoring, path);
  syncPath(dirname(path));
  return { kept, keys };
}

/** Whether there is more than an empty file, which is no database yet. */
export function hasContent(path: string): boolean {
  return existsSync(path) && statSync(path).size > 0;
}

/** The newest of those that are kept, where a restore was cut short after it had moved the database. */
function findMovedAway(path: string): string | null {
  if (!existsSync(restoringPath(path))) return null;
  const prefix = `${basename(path)}.before-`;
  const names = readdirSync(dirname(path)).filter(
    (name) => name.startsWith(prefix) && /Z(-\d+)?$/.test(name),
  );
  const newest = names.toSorted().at(-1);
  return newest === undefined ? null : join(dirname(path), newest);
}

/** Two restores may come within one second. */
function unusedName(name: string): string {
  for (let count = 1; ; count += 1) {
    const candidate = count === 1 ? name : `${name}-${count}`;
    if (!existsSync(candidate) && !existsSync(`${candidate}-wal`)) return candidate;
  }
}

/** The log goes with its database; the index of the log is made anew by whoever opens it. */
function keepLog(path: string, kept: string): void {
  if (hasContent(`${path}-wal`)) renameSync(`${path}-wal`, `${kept}-wal`);
}

function refuseUnsound(restoring: string): void {
  const { ok, checks } = verifyDatabase(restoring);
  if (ok) return;
  const [name, check] = Object.entries(checks).find(([, { ok: isOk }]) => !isOk) ?? [];
  throw new UserError(
    `${restoring}, which was to be the database, is not sound (${name}: ${check?.detail}): nothing was replaced; look at this disk, then run the restore again.`,
  );
}

/** What is not the signals': each table after those that it refers to. */
const REGISTERED = ["desks", "api_keys", "members", "invitations", "passkeys", "audit"] as const;
type Registered = Readonly<Record<(typeof REGISTERED)[number], readonly Row[]>>;
type Row = Record<string, string | number | Uint8Array | null> & { readonly id: string | number };

/** That the database before is of no use any more does not stand in the way; that the new one is, does. */
function takeOverKeys(path: string, restoring: string): KeysTaken {
  const before = readRegistered(path);
  if ("failure" in before) return before;
  try {
    return change(restoring, (db) => mergeKeys(db, before));
  } catch (error) {
    if (isAboutOneRow(error)) return { failure: messageOf(error) };
    throw explainFailure(error, restoring);
  }
}

function readRegistered(path: string): Registered | { failure: string } {
  try {
    const db = openForReading(path);
    try {
      const isCurrent = readVersion(db) === schemaVersion(currentSchema);
      return isCurrent ? registered(db) : { failure: "it is of another version" };
    } finally {
      db.close();
    }
  } catch (error) {
    return {
      failure: error instanceof DamageError ? `damaged: ${error.problem}` : messageOf(error),
    };
  }
}

function registered(db: Database): Registered {
  const tables = REGISTERED.map((table) => [
    table,
    db.query<Row, []>(`SELECT * FROM ${table} ORDER BY id`).all(),
  ]);
  return Object.fromEntries(tables) as Registered;
}

function mergeKeys(db: Database, before: Registered): KeysTaken {
  const restored = registered(db);
  const failure = findDifference(restored.desks, before.desks);
  if (failure !== null) return { failure };
  const keys = new Map(restored.api_keys.map((key) => [key.id, key]));
  for (const table of REGISTERED) upsert(db, table, before[table]);
  const isRevokedSince = ({ id, revoked_at }: Row): boolean =>
    revoked_at !== null && keys.get(id)?.["revoked_at"] === null;
  return {
    minted: before.api_keys.filter(({ id }) => !keys.has(id)).length,
    revoked: before.api_keys.filter(isRevokedSince).length,
    failure: null,
  };
}

/** Desks are numbered on each server from 1. Either side may have some that the other has not yet. */
function findDifference(restored: readonly Row[], before: readonly Row[]): string | null {
  const desks = new Map(before.map((desk) => [desk.id, desk]));
  const shared = restored.filter(({ id }) => desks.has(id));
  if (shared.length === 0 && restored.length > 0) return "it has none of the backup's desks";
  const isSame = shared.every((desk) => desks.get(desk.id)?.["created_at"] === desk["created_at"]);
  return isSame ? null : "the backup is of another server";
}

/**
 * Either side may be the newer one. What is revoked, removed, spent or expires in one of them does so afterwards,
 * and a count or the time of a use is the greater one.
 */
const merged: Readonly<Record<string, "min" | "max">> = {
  expires_at: "min",
  revoked_at: "min",
  removed_at: "min",
  spent_at: "min",
  signed_out_at: "max",
  last_used_at: "max",
  differing_duplicates: "max",
};

function upsert(db: Database, table: string, rows: readonly Row[]): void {
  const columns = Object.keys(rows[0] ?? {});
  const values = columns.map(() => "?").join(", ");
  const updates = columns.map((column) => `${column} = ${valueOf(column)}`).join(", ");
  for (const row of rows) {
    db.query(
      `INSERT INTO ${table} (${columns.join(", ")}) VALUES (${values}) ON CONFLICT (id) DO UPDATE SET ${updates}`,
    ).run(...Object.values(row));
  }
}

/** SQLite's `min` and `max` are null where one of the two is. */
function valueOf(column: string): string {
  const choice = merged[column];
  return choice === undefined
    ? `excluded.${column}`
    : `${choice}(ifnull(${column}, excluded.${column}), ifnull(excluded.${column}, ${column}))`;
}

function change<T>(path: string, work: (db: Database) => T): T {
  const db = new Database(path, { create: false, readwrite: true, strict: true });
  try {
    db.run("PRAGMA foreign_keys = ON");
    migrate(db);
    return inTransaction(db, () => work(db));
  } finally {
    db.close();
  }
}

/** Replaces a data folder's database by a copy, and keeps the previous one under another name. */
import { constants, Database } from "bun:sqlite";
import { existsSync, readdirSync, renameSync, rmSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { pathToFileURL } from "node:url";
import { messageOf, UserError } from "../../../lib/errors.ts";
import type { DatabaseFiles, Restored } from "../../../domain/storage/files.ts";
import { syncPath } from "../../../lib/files.ts";
import { carryOver, countMissing } from "./carry-over.ts";
import { copyInProcess } from "./copying.ts";
import { DamageError, explainFailure, isBusy, isRefusedWrite } from "../files/failures.ts";
import { DATABASE_NAME, restoringPath } from "../files/folder.ts";
import { lockFolder } from "../files/lock.ts";
import { isEmpty, refuseDamagedLog } from "../log/log-damage.ts";
import { currentSchema, migrate, readVersion, schemaVersion } from "../files/migrate.ts";
import { openForReading } from "../read/read.ts";
import { removeSessions } from "../side/sessions.ts";
import { compareSchema, describeObjects } from "../files/schema.ts";
import { COMMAND_BUSY_MS, guard, inTransaction, retryWhileBusy } from "../files/transaction.ts";
import { describeProblem, verifyDatabase } from "./verify.ts";

/** See `DatabaseFiles`. The lock keeps servers out until the database is in its place. */
export async function restore(
  file: string,
  dataDir: string,
  { isForced, stamp, ...copying }: Parameters<DatabaseFiles["restore"]>[2],
): Promise<Restored> {
  const path = join(dataDir, DATABASE_NAME);
  using _lock = lockFolder(dataDir);
  if (!isEmpty(path) && !isForced) {
    throw new UserError(
      `${dataDir} has a database, and nothing was changed: to replace it by the backup (and keep it under another name), add --force.`,
    );
  }
  await copyInProcess(file, restoringPath(path), copying);
  return putInPlace(path, stamp);
}

/**
 * Call it with the folder's lock held and the copy at `restoringPath(path)`. A backup does not know which
 * keys were created, rotated or revoked after it, so those are carried over from the previous database if
 * it can be read: a revoked key must stay revoked. It waits `busyMs` for another's lock. If this is interrupted, the folder has its previous
 * database, or `openDatabase` refuses it until a restore is run again, which finds the previous database
 * under its new name.
 */
export function putInPlace(path: string, stamp: string, busyMs = COMMAND_BUSY_MS): Restored {
  // Held to the end: other processes commit before the carry-over, or are refused (`store/sqlite/sql.ts`).
  using _writeLock = isEmpty(path) ? null : takeWriteLock(path, busyMs);
  return replace(path, stamp);
}

function replace(path: string, stamp: string): Restored {
  const restoring = restoringPath(path);
  const isPresent = !isEmpty(path);
  const newName = unusedName(`${path}.before-${stamp}`);
  const previous = isPresent ? path : findKept(path);
  // If a restore was interrupted, the log has not followed its database yet.
  if (!isPresent) moveLog(path, previous ?? newName);
  const taken =
    previous === null ? { keys: null, missing_signals: null } : takeOver(previous, restoring);
  refuseUnsound(restoring);
  const archived_desks = archivedDesks(restoring);
  syncPath(restoring);
  if (isPresent) {
    renameSync(path, newName);
    moveLog(path, newName);
  }
  for (const rest of [`${path}-wal`, `${path}-shm`]) rmSync(rest, { force: true });
  removeSessions(dirname(path));
  renameSync(restoring, path);
  syncPath(dirname(path));
  return { kept: isPresent ? newName : previous, ...taken, archived_desks };
}

/**
 * Returns a connection that holds the lock. Null for a damaged database, which is left as it is: SQLite
 * could drop a part of its log. Do not open the file by other means than SQLite meanwhile: closing it
 * would release the lock.
 */
function takeWriteLock(path: string, busyMs: number): Database | null {
  try {
    return retryWhileBusy(busyMs, () => tryWriteLock(path, busyMs));
  } catch (error) {
    if (!isBusy(error)) return null;
    rmSync(restoringPath(path), { force: true });
    throw locked(path);
  }
}

/**
 * SQLite ends WAL mode only for the last connection. So this finds a server that still runs although
 * somebody has deleted the lock of the folder.
 */
function tryWriteLock(path: string, busyMs: number): Database {
  refuseDamagedLog(path);
  openForReading(path, busyMs).close();
  const db = new Database(path, { create: false, readwrite: true });
  try {
    db.run("PRAGMA journal_mode = DELETE");
    db.run("BEGIN IMMEDIATE");
    return db;
  } catch (error) {
    db.close();
    throw error;
  }
}

function locked(path: string): UserError {
  return new UserError(
    `${path} is locked by another process, and nothing was changed: wait for it or end it, then run the restore again.`,
  );
}

/** The newest database that an earlier restore has kept. */
function findKept(path: string): string | null {
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

/** SQLite rebuilds the index of the log (`-shm`) by itself. */
function moveLog(path: string, newPath: string): void {
  if (!isEmpty(`${path}-wal`)) renameSync(`${path}-wal`, `${newPath}-wal`);
}

function refuseUnsound(restoring: string): void {
  const problem = describeProblem(verifyDatabase(restoring));
  if (problem === null) return;
  throw new UserError(
    `The restored database ${restoring} is not sound (${problem}), and nothing was replaced: check this disk, then run the restore again.`,
  );
}

type Taken = Pick<Restored, "keys" | "missing_signals">;

/** A previous database that cannot be used does not stop the restore; a restored one that cannot, does. */
function takeOver(previous: string, restoring: string): Taken {
  try {
    refuseUnusable(previous);
    return carryOverInto(restoring, previous);
  } catch (error) {
    if (isRefusedWrite(error)) throw explainFailure(error, restoring);
    if (isBusy(error)) throw locked(previous);
    const failure = error instanceof DamageError ? `damaged: ${error.problem}` : messageOf(error);
    return { keys: { failure }, missing_signals: null };
  }
}

function refuseUnusable(previous: string): void {
  refuseDamagedLog(previous);
  using db = openForReading(previous);
  const isCurrent = readVersion(db) === schemaVersion(currentSchema);
  if (!isCurrent) throw new UserError("it is of another version");
  const tables = compareSchema(db).missing.filter(({ type }) => type === "table");
  if (tables.length > 0) throw new UserError(`missing or changed: ${describeObjects(tables)}`);
}

function carryOverInto(restoring: string, previous: string): Taken {
  const { SQLITE_OPEN_READWRITE, SQLITE_OPEN_URI } = constants;
  using db = new Database(restoring, SQLITE_OPEN_READWRITE | SQLITE_OPEN_URI);
  guard(db, COMMAND_BUSY_MS);
  // A restore that is killed here begins with a new copy; a journal on disk would be played back into it.
  db.run("PRAGMA journal_mode = MEMORY");
  migrate(db);
  db.query("ATTACH ? AS previous").run(`${pathToFileURL(previous).href}?mode=ro`);
  return { keys: inTransaction(db, () => carryOver(db)), missing_signals: countMissing(db) };
}

function archivedDesks(restoring: string): string[] {
  using db = openForReading(restoring);
  const sql = "SELECT name FROM desks WHERE archived_at IS NOT NULL ORDER BY name";
  const desks = db.query<{ name: string }, []>(sql).all();
  return desks.map(({ name }) => name);
}

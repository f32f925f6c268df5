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
import { ACTIVITY_NAME } from "./activity.ts";
import {
  type Carried,
  carryOver,
  haveSameDesks,
  type KeysTaken,
  readCarried,
} from "./carry-over.ts";
import { syncPath } from "./copy.ts";
import { DamageError, explainFailure, isAboutOneRow } from "./failures.ts";
import { restoringPath } from "./folder.ts";
import { currentSchema, migrate, readVersion, schemaVersion } from "./migrate.ts";
import { openForReading } from "./read.ts";
import { compareSchema, describeObjects } from "./schema.ts";
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
  /** Where the activity of desks is that had other numbers than the restored ones, or null. */
  readonly activity_kept: string | null;
}

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
  const { keys, areDesksSame } = takeOver(before, restoring);
  refuseUnsound(restoring);
  if (before === path && kept !== null) {
    renameSync(path, kept);
    keepLog(path, kept);
  }
  for (const rest of [`${path}-wal`, `${path}-shm`]) rmSync(rest, { force: true });
  const activity_kept = areDesksSame ? null : moveActivity(dirname(path), stamp);
  syncPath(restoring);
  renameSync(restoring, path);
  syncPath(dirname(path));
  return { kept, keys, activity_kept };
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

/** Moves the log with its database. SQLite rebuilds the index of the log (`-shm`) by itself. */
function keepLog(path: string, kept: string): void {
  if (hasContent(`${path}-wal`)) renameSync(`${path}-wal`, `${kept}-wal`);
}

/** Moves the activity away: its rows have the numbers of desks, and a desk must not see another's. */
function moveActivity(dataDir: string, stamp: string): string | null {
  const path = join(dataDir, ACTIVITY_NAME);
  if (!existsSync(path)) return null;
  const kept = unusedName(`${path}.before-${stamp}`);
  renameSync(path, kept);
  keepLog(path, kept);
  for (const rest of [`${path}-wal`, `${path}-shm`]) rmSync(rest, { force: true });
  return kept;
}

function refuseUnsound(restoring: string): void {
  const { ok, checks } = verifyDatabase(restoring);
  if (ok) return;
  const [name, check] = Object.entries(checks).find(([, { ok: isOk }]) => !isOk) ?? [];
  throw new UserError(
    `${restoring}, which was to be the database, is not sound (${name}: ${check?.detail}): nothing was replaced; look at this disk, then run the restore again.`,
  );
}

interface TakenOver {
  readonly keys: KeysTaken | null;
  /** Whether every desk of the database before still has its number. */
  readonly areDesksSame: boolean;
}

/** A database before that cannot be used does not stop the restore; a restored one that cannot, does. */
function takeOver(path: string | null, restoring: string): TakenOver {
  if (path === null) return { keys: null, areDesksSame: false };
  const before = readBefore(path);
  if ("failure" in before) return { keys: before, areDesksSame: false };
  try {
    return change(restoring, (db) => {
      const keys = carryOver(db, before);
      return { keys, areDesksSame: haveSameDesks(before.desks, readCarried(db).desks) };
    });
  } catch (error) {
    if (isAboutOneRow(error)) return { keys: { failure: messageOf(error) }, areDesksSame: false };
    throw explainFailure(error, restoring);
  }
}

function readBefore(path: string): Carried | { failure: string } {
  try {
    const db = openForReading(path);
    try {
      const isCurrent = readVersion(db) === schemaVersion(currentSchema);
      if (!isCurrent) return { failure: "it is of another version" };
      const changed = compareSchema(db).missing.filter(({ type }) => type === "table");
      return changed.length === 0
        ? readCarried(db)
        : { failure: `missing or changed: ${describeObjects(changed)}` };
    } finally {
      db.close();
    }
  } catch (error) {
    return {
      failure: error instanceof DamageError ? `damaged: ${error.problem}` : messageOf(error),
    };
  }
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

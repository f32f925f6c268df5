/** Copies a database, in use or not: the copy is a snapshot, on disk, and verified. */
import type { Database } from "bun:sqlite";
import { closeSync, openSync, readSync, renameSync } from "node:fs";
import { dirname } from "node:path";
import { systemCode, UserError } from "../../../lib/errors.ts";
import { shellQuoted } from "../../../lib/text/shell.ts";
import type { Verification } from "../../../domain/storage/files.ts";
import { partialPath, syncPath } from "../../../lib/files.ts";
import { explainFailure, isRefusedWrite } from "../files/failures.ts";
import { APPLICATION_ID } from "../files/migrate.ts";
import { copyIn, createPrivateFolder, removeAbandoned } from "../files/private-folder.ts";
import { openSuspect, refuseDamaged } from "../read/read.ts";
import { compareSchema, describeDifferences } from "../files/schema.ts";
import { describeProblem, verifyDatabase } from "./verify.ts";

const CACHE_KIB = 65_536;

/**
 * Copies everything that was committed when it began. The copy is written with mode 0600 in a private `folder` beside
 * `to`, synced, verified and only then renamed, so `to` is always the old file or the whole new one. Blocks this
 * thread until the end: see `copying.ts`. Throws `UserError` if a file cannot be used or is damaged, or if
 * the `earlier` backups, newest first, are of another database.
 */
export function copyDatabase(
  from: string,
  to: string,
  earlier: readonly string[] = [],
  folder: string = partialPath(to),
): Verification {
  try {
    removeAbandoned(dirname(to));
    using _folder = createPrivateFolder(folder);
    const copy = copyIn(folder);
    const verification = makeCopy(from, copy, earlier);
    renameSync(copy, to);
    syncPath(dirname(to));
    return { ...verification, file: to };
  } catch (error) {
    throw explainCopyFailure(error, from, to);
  }
}

/** Makes a copy that is on disk and sound, in a private folder. */
export function makeCopy(
  from: string,
  copy: string,
  earlier: readonly string[] = [],
): Verification {
  vacuumInto(from, copy, earlier);
  syncPath(copy);
  const verification = verifyDatabase(copy);
  const problem = describeProblem(verification);
  if (problem === null) return verification;
  throw new UserError(
    `The copy of ${from} is not sound (${problem}): check the original`,
    `verify ${shellQuoted(from)}`,
  );
}

/**
 * Whether a file is a Signalbox backup, by its header: a server's database is in WAL mode.
 * https://sqlite.org/fileformat2.html#the_database_header
 */
export function isCopy(path: string): boolean {
  const header = Buffer.alloc(100);
  const file = openSync(path, "r");
  try {
    readSync(file, header, 0, header.length, 0);
  } finally {
    closeSync(file);
  }
  const isSqlite = header.toString("latin1", 0, 16) === "SQLite format 3\0";
  return isSqlite && header[18] === 1 && header.readUInt32BE(68) === APPLICATION_ID;
}

/**
 * Copies each table and each index page by page as it is. So a row that damage has hidden in one of them
 * is still in the other, and `integrity_check` of the copy finds it.
 */
function vacuumInto(from: string, copy: string, earlier: readonly string[]): void {
  using db = openSuspect(from);
  refuseOtherSchema(db, from);
  refuseDamaged(db, from);
  refuseOtherDatabase(db, from, earlier);
  // SQLite writes into an empty file, which keeps its mode. Exclusive: this never replaces a file.
  closeSync(openSync(copy, "wx", 0o600));
  db.run(`PRAGMA cache_size = -${CACHE_KIB}`);
  db.query("VACUUM INTO ?").run(copy);
}

/** SQLite would execute every definition in the schema, and nobody could restore the copy. */
function refuseOtherSchema(db: Database, from: string): void {
  const problems = describeDifferences(compareSchema(db));
  if (problems.length === 0) return;
  throw new UserError(
    `${from} does not have Signalbox's schema (${problems.join("; ")}) and cannot be copied: undo the change, for example with: sqlite3 ${shellQuoted(from)}`,
  );
}

/** Throws `UserError` if the `earlier` backups, newest first, are of another database. */
export function refuseOtherBackups(path: string, earlier: readonly string[]): void {
  using db = openSuspect(path);
  refuseOtherDatabase(db, path, earlier);
}

/**
 * Backups of an empty database, begun where a disk was not mounted, must not displace the good ones. Those that
 * cannot be read, or have no desk, do not tell whose they are.
 */
function refuseOtherDatabase(db: Database, from: string, earlier: readonly string[]): void {
  for (const backup of earlier) {
    const isOwn = isBackupOf(db, backup);
    if (isOwn === true) return;
    if (isOwn === null) continue;
    throw new UserError(
      `${backup} is a backup of another database than ${from}: mount the disk with the right data, or make backups in another folder.`,
    );
  }
}

/** Returns the first of the backups that is not known to be of another database, or null. */
export function findOwnBackup(path: string, backups: readonly string[]): string | null {
  try {
    using db = openSuspect(path);
    return backups.find((backup) => isBackupOf(db, backup) !== false) ?? null;
  } catch {
    // Without a readable database, none is known to be of another.
    return backups[0] ?? null;
  }
}

/** Null: it does not tell. */
function isBackupOf(db: Database, backup: string): boolean | null {
  const desks = readDesks(backup);
  if (desks.length === 0) return null;
  const isDesk = db.query<{ uid: string }, [string]>("SELECT uid FROM desks WHERE uid = ?");
  return desks.some((uid) => isDesk.get(uid) !== null);
}

/** The ids of a backup's desks; none if it cannot be read. */
function readDesks(backup: string): string[] {
  try {
    using db = openSuspect(backup);
    refuseOtherSchema(db, backup);
    return db
      .query<{ uid: string }, []>("SELECT uid FROM desks")
      .all()
      .map(({ uid }) => uid);
  } catch {
    return [];
  }
}

/** Only the target and its folder are used without SQLite. */
export function explainCopyFailure(error: unknown, from: string, to: string): unknown {
  const isOfSystem = error instanceof Error && "syscall" in error;
  if (!isOfSystem) return explainFailure(error, isRefusedWrite(error) ? to : from);
  return new UserError(
    `${to} cannot be written (${systemCode(error)}): name a file in a folder that this user may write to, on a disk with free space.`,
  );
}

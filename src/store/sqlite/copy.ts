/** Copies a database, in use or not: the copy is a snapshot, on disk, and verified. */
import type { Database } from "bun:sqlite";
import { closeSync, openSync, readdirSync, readSync, renameSync, rmSync } from "node:fs";
import { dirname, join } from "node:path";
import { systemCode, UserError } from "../../domain/errors.ts";
import { shellQuoted } from "../../domain/shell.ts";
import type { Verification } from "../../domain/storage.ts";
import { partialPath, syncPath } from "../../files.ts";
import { explainFailure, isRefusedWrite } from "./failures.ts";
import { APPLICATION_ID } from "./migrate.ts";
import { openSuspect, refuseDamaged } from "./read.ts";
import { compareSchema, describeDifferences } from "./schema.ts";
import { describeProblem, verifyDatabase } from "./verify.ts";

const CACHE_KIB = 65_536;

/**
 * Copies everything that was committed when it began. The copy is written beside `to` with mode 0600,
 * synced, verified and only then renamed, so `to` is always the old file or the whole new one. Blocks this
 * thread until the end: see `copying.ts`. Throws `UserError` if a file cannot be used or is damaged, or if
 * the `earlier` backups, newest first, are of another database.
 */
export function copyDatabase(
  from: string,
  to: string,
  earlier: readonly string[] = [],
): Verification {
  const partial = partialPath(to, process.pid);
  try {
    removeAbandoned(dirname(to));
    vacuumInto(from, partial, earlier);
    syncPath(partial);
    const verification = verifyDatabase(partial);
    const problem = describeProblem(verification);
    if (problem !== null) {
      throw new UserError(
        `The copy of ${from} is not sound (${problem}): check the original`,
        `verify ${shellQuoted(from)}`,
      );
    }
    renameSync(partial, to);
    syncPath(dirname(to));
    return { ...verification, file: to };
  } catch (error) {
    removePartial(partial);
    throw explain(error, from, to);
  }
}

/** The copy and SQLite's journal of it. */
export function partialFiles(partial: string): string[] {
  return [partial, `${partial}-journal`];
}

/** A disk that refuses this has refused the copy before, and that error is the one to report. */
function removePartial(partial: string): void {
  try {
    for (const file of partialFiles(partial)) rmSync(file, { force: true });
  } catch {
    // The next copy to this folder removes them.
  }
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
function vacuumInto(from: string, partial: string, earlier: readonly string[]): void {
  using db = openSuspect(from);
  refuseOtherSchema(db, from);
  refuseDamaged(db, from);
  refuseOtherDatabase(db, from, earlier);
  // SQLite writes into an empty file, which keeps its mode. Exclusive: this never replaces a file.
  closeSync(openSync(partial, "wx", 0o600));
  db.run(`PRAGMA cache_size = -${CACHE_KIB}`);
  db.query("VACUUM INTO ?").run(partial);
}

/** SQLite would execute every definition in the schema, and nobody could restore the copy. */
function refuseOtherSchema(db: Database, from: string): void {
  const problems = describeDifferences(compareSchema(db));
  if (problems.length === 0) return;
  throw new UserError(
    `${from} does not have Signalbox's schema (${problems.join("; ")}) and cannot be copied: undo the change, for example with: sqlite3 ${shellQuoted(from)}`,
  );
}

/**
 * Backups of an empty database, begun where a disk was not mounted, must not displace the good ones. Those that
 * cannot be read, or have no desk, do not tell whose they are.
 */
function refuseOtherDatabase(db: Database, from: string, earlier: readonly string[]): void {
  const isDesk = db.query<{ uid: string }, [string]>("SELECT uid FROM desks WHERE uid = ?");
  for (const backup of earlier) {
    const desks = readDesks(backup);
    if (desks.length === 0) continue;
    if (desks.some((uid) => isDesk.get(uid) !== null)) return;
    throw new UserError(
      `${backup} is a backup of another database than ${from}: mount the disk with the right data, or make backups in another folder.`,
    );
  }
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

/** Removes what killed copies have left in the folder. */
function removeAbandoned(folder: string): void {
  for (const name of readdirSync(folder)) {
    const pid = /^\..+\.(\d+)\.signalbox-partial(-journal)?$/.exec(name)?.[1];
    if (pid !== undefined && !isRunning(Number(pid))) rmSync(join(folder, name), { force: true });
  }
}

function isRunning(pid: number): boolean {
  if (pid === process.pid) return false;
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return systemCode(error) === "EPERM";
  }
}

/** Only the target and its folder are used without SQLite. */
function explain(error: unknown, from: string, to: string): unknown {
  const isOfSystem = error instanceof Error && "syscall" in error;
  if (!isOfSystem) return explainFailure(error, isRefusedWrite(error) ? to : from);
  return new UserError(
    `${to} cannot be written (${systemCode(error)}): name a file in a folder that this user may write to, on a disk with free space.`,
  );
}

/**
 * The write-ahead log and its index must be the same files for every process that has the database open. If
 * somebody deletes one of them, SQLite begins another for the next process, and the two overwrite each
 * other's changes. What is in a deleted log stays reachable for those who have it open.
 */
import { Database } from "bun:sqlite";
import { existsSync, renameSync, rmSync, statSync } from "node:fs";
import { dirname, join } from "node:path";
import { UserError } from "../../../lib/errors.ts";
import { shellQuoted } from "../../../lib/text/shell.ts";
import { isBusy } from "../files/failures.ts";
import { isCutOff, isEmpty } from "./log-damage.ts";
import { readVersion } from "../files/migrate.ts";

/** In a second or more, the last process to close the database has deleted them, and others have looked, too. */
const LOOKS_MAX = 50;
const PAUSE_MS_MAX = 40;

/** The log and its index as a connection has opened them. */
const opened = new WeakMap<Database, readonly LogFile[]>();

interface LogFile {
  readonly path: string;
  readonly inode: number | null;
}

function logFiles(path: string): LogFile[] {
  return [`${path}-wal`, `${path}-shm`].map((file) => ({ path: file, inode: inodeOf(file) }));
}

/** Null without such a file. */
export function inodeOf(path: string): number | null {
  return statSync(path, { throwIfNoEntry: false })?.ino ?? null;
}

/** For {@link hasLogMoved}. Call it when the connection has read something. */
export function rememberLog(db: Database): void {
  opened.set(db, logFiles(db.filename));
}

/** Whether the log or its index was removed or replaced since the connection was opened. Costs two `stat`s. */
export function hasLogMoved(db: Database): boolean {
  return opened.get(db)?.some(({ path, inode }) => inodeOf(path) !== inode) ?? false;
}

/**
 * Whether somebody emptied the log or cut it off: its index counts frames that the file no longer has. A checkpoint that
 * empties the log resets the index first.
 */
export function isLogCut(db: Database): boolean {
  try {
    const frames = framesInLog(db);
    if (frames === 0 || !isCutOff(`${db.filename}-wal`, frames)) return false;
    // Meanwhile, a checkpoint may have emptied the log, or somebody removed it.
    return framesInLog(db) === frames && !hasLogMoved(db);
  } catch {
    // It is looked at again a second later.
    return false;
  }
}

function framesInLog(db: Database): number {
  return db.query<{ log: number }, []>("PRAGMA wal_checkpoint(NOOP)").get()?.log ?? 0;
}

export function describeCutLog(db: Database): string {
  return `the write-ahead log was emptied or cut off while the server ran: ${db.filename}-wal`;
}

/**
 * Call it before a connection is opened: SQLite would create what is missing. Throws `UserError` if the log or its
 * index is missing although a process has the database open.
 */
export function refuseRemovedLog(path: string): void {
  // Only a server is worth the look, which a copy of a database may not allow.
  if (!existsSync(join(dirname(path), "serve.lock"))) return;
  for (let looks = 1; isLogMissing(path) && isOpenElsewhere(path); looks += 1) {
    if (looks === LOOKS_MAX) {
      throw new UserError(
        `${path}-wal or ${path}-shm was removed while another process has the database open. Do not stop a signalbox server: it has the only copy of the newest signals, and ends by itself when they are in the database; if the disk is full, free some space. Any other process, end it; find it with: fuser -v ${shellQuoted(path)}`,
      );
    }
    // Processes that look at once take each other for a server: at random they meet less.
    Bun.sleepSync(Math.random() * PAUSE_MS_MAX);
  }
}

function isLogMissing(path: string): boolean {
  return logFiles(path).some(({ inode }) => inode === null);
}

/** Without shared memory, SQLite opens a log only for the one process that has the database open. */
function isOpenElsewhere(path: string): boolean {
  const db = new Database(path, { create: false, readwrite: true });
  try {
    db.run("PRAGMA locking_mode = EXCLUSIVE");
    readVersion(db);
    return false;
  } catch (error) {
    return isBusy(error);
  } finally {
    db.close();
  }
}

/**
 * Removes a log that another process has begun since: SQLite would copy it over newer pages of the database. Returns
 * the new name if it is not empty, or null.
 */
export function setSecondLogAside(db: Database): string | null {
  const second = (opened.get(db) ?? [])
    .filter(({ path, inode }) => ![null, inode].includes(inodeOf(path)))
    .map(({ path }) => path);
  const log = second.find((path) => path.endsWith("-wal") && !isEmpty(path));
  const aside = log === undefined ? null : `${log}.second-${Date.now()}`;
  for (const path of second) if (path !== log) rmSync(path, { force: true });
  // Last: nothing can fail any more, so that its new name is always reported.
  if (log !== undefined && aside !== null) renameSync(log, aside);
  return aside;
}

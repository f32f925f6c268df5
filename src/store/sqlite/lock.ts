/**
 * One server a data folder. The lock is a SQLite write lock on a file of its own: the kernel lets go of
 * it when the process ends, however it ends, and tells others whose it is while it is held.
 *
 * No name is written into the file. It would be there a little later than the lock and stay longer, so
 * that of several that start at once some would be told of a process that is long gone; and to write it
 * makes those fail that read it just then.
 */
import { Database, SQLiteError } from "bun:sqlite";
import { openSync } from "node:fs";
import { join } from "node:path";
import { UserError } from "../../domain/errors.ts";
import { isBusy } from "./failures.ts";
import { type OnTightened, prepareFolder, sayOnStderr } from "./folder.ts";
import { findHolder } from "./lock-holder.ts";

export interface FolderLock {
  release(): void;
}

/** How often and after how many milliseconds a lock that nobody else seems to hold is tried again. */
const TRIES_MAX = 20;
const RETRY_MS = 10;

/** Throws {@link UserError} naming the process that has the folder. */
export function lockFolder(dataDir: string, onTightened: OnTightened = sayOnStderr): FolderLock {
  prepareFolder(dataDir, onTightened);
  const db = openLock(dataDir);
  return {
    release: () => {
      db.run("ROLLBACK");
      db.close();
    },
  };
}

/** The connection that holds the lock. */
function openLock(dataDir: string): Database {
  const path = join(dataDir, "serve.lock");
  let db: Database | null = null;
  try {
    db = new Database(path, { create: true, readwrite: true, strict: true });
    // Nothing is ever written, but a journal on the disk would be begun with the transaction.
    db.run("PRAGMA journal_mode = MEMORY");
    takeLock(db, path, dataDir);
    return db;
  } catch (error) {
    db?.close();
    throw error instanceof SQLiteError ? unusable(error, dataDir) : error;
  }
}

function takeLock(db: Database, path: string, dataDir: string): void {
  if (begin(db)) return;
  // Never closed: that would take away the locks that this very process has on the file (fcntl(2)).
  const fd = openSync(path, "r");
  for (let tries = 1; tries < TRIES_MAX; tries += 1) {
    const holder = findHolder(fd);
    if (holder !== null) throw taken(holder, dataDir);
    // It was let go of in between, or it is held by this very process.
    if (begin(db)) return;
    Bun.sleepSync(RETRY_MS);
  }
  throw taken(process.pid, dataDir);
}

function unusable(error: SQLiteError, dataDir: string): UserError {
  return new UserError(
    `The data folder ${dataDir} cannot be locked (${error.code}: ${error.message}): name a folder that this user may write to, with --data DIR, or look at its disk.`,
  );
}

function begin(db: Database): boolean {
  try {
    db.run("BEGIN IMMEDIATE");
    return true;
  } catch (error) {
    if (isBusy(error)) return false;
    throw error;
  }
}

function taken(holder: number | "unknown", dataDir: string): UserError {
  return new UserError(
    `Process ${holder} serves ${dataDir} already: stop it first, or name another folder with --data DIR.`,
  );
}

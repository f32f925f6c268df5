/**
 * One server a data folder. The lock is a SQLite write lock on a file of its own: the kernel lets go
 * of it when the process ends, however it ends, and others can read whose it is while it is held.
 */
import { Database, SQLiteError } from "bun:sqlite";
import { join } from "node:path";
import { UserError } from "../../domain/errors.ts";
import { isBusy } from "./failures.ts";
import { type OnTightened, prepareFolder, sayOnStderr } from "./folder.ts";

export interface FolderLock {
  release(): void;
}

/** How often and after how many milliseconds whoever holds the lock is asked who it is. */
const QUESTIONS_MAX = 100;
const QUESTION_INTERVAL_MS = 10;

/** Throws {@link UserError} naming the process that has the folder. */
export function lockFolder(dataDir: string, onTightened: OnTightened = sayOnStderr): FolderLock {
  prepareFolder(dataDir, onTightened);
  const db = new Database(join(dataDir, "serve.lock"), {
    create: true,
    readwrite: true,
    strict: true,
  });
  try {
    takeLock(db, dataDir);
  } catch (error) {
    db.close();
    throw error instanceof SQLiteError ? unusable(error, dataDir) : error;
  }
  return {
    release: () => {
      db.run("ROLLBACK");
      db.close();
    },
  };
}

/** The name is committed before the lock is taken for good; in between another may have done the same. */
function takeLock(db: Database, dataDir: string): void {
  do {
    if (!begin(db)) throw taken(db, dataDir);
    db.run(
      "CREATE TABLE IF NOT EXISTS holder (id INTEGER PRIMARY KEY, pid INTEGER NOT NULL) STRICT",
    );
    db.run("INSERT OR REPLACE INTO holder (id, pid) VALUES (1, ?)", [process.pid]);
    db.run("COMMIT");
    if (!begin(db)) throw taken(db, dataDir);
  } while (readHolder(db) !== process.pid && release(db));
}

function unusable(error: SQLiteError, dataDir: string): UserError {
  return new UserError(
    `The data folder ${dataDir} cannot be locked (${error.code}: ${error.message}): look at its disk and rights, or name another folder with --data DIR.`,
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

function release(db: Database): true {
  db.run("ROLLBACK");
  return true;
}

function taken(db: Database, dataDir: string): UserError {
  let pid: number | null = null;
  for (let question = 0; pid === null && question < QUESTIONS_MAX; question += 1) {
    if (question > 0) Bun.sleepSync(QUESTION_INTERVAL_MS);
    pid = askHolder(db);
  }
  return new UserError(
    `Process ${pid ?? "unknown"} serves ${dataDir} already: stop it first, or name another folder with --data DIR.`,
  );
}

/** Null while the holder is about to write its name. */
function askHolder(db: Database): number | null {
  try {
    return readHolder(db);
  } catch (error) {
    if (isBusy(error) || (error instanceof SQLiteError && /no such table/.test(error.message)))
      return null;
    throw error;
  }
}

function readHolder(db: Database): number | null {
  return db.query<{ pid: number }, []>("SELECT pid FROM holder").get()?.pid ?? null;
}

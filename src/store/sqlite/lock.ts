/**
 * One server per data folder: a SQLite write lock on a file of its own, which the kernel releases however
 * the process ends.
 */
import { Database, SQLiteError } from "bun:sqlite";
import { join } from "node:path";
import { UserError } from "../../domain/errors.ts";
import { isBusy } from "./failures.ts";
import { type OnTightened, prepareFolder, sayOnStderr, tighten } from "./folder.ts";

export interface FolderLock {
  release(): void;
}

/** How long to wait for a server that is just stopping. */
const WAIT_MS = 200;

/** Throws {@link UserError} when another server has the folder. */
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
  let db: Database | null = null;
  try {
    const path = join(dataDir, "serve.lock");
    db = new Database(path, { create: true, readwrite: true, strict: true });
    db.run(`PRAGMA busy_timeout = ${WAIT_MS}`);
    // Otherwise the transaction creates a journal on the disk, although it writes nothing.
    db.run("PRAGMA journal_mode = MEMORY");
    db.run("BEGIN IMMEDIATE");
    // SQLite may have created it.
    tighten(path, () => {});
    return db;
  } catch (error) {
    db?.close();
    throw explain(error, dataDir);
  }
}

function explain(error: unknown, dataDir: string): unknown {
  if (isBusy(error)) {
    return new UserError(
      `Another signalbox server is already using ${dataDir}: stop it first, or name another folder with --data DIR.`,
    );
  }
  if (!(error instanceof SQLiteError)) return error;
  return new UserError(
    `The data folder ${dataDir} cannot be locked (${error.code}: ${error.message}): name a folder that this user may write to, with --data DIR, or check its disk.`,
  );
}

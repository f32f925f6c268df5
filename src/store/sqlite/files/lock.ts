/**
 * One server per data folder: a SQLite write lock on a file of its own, which the kernel releases however
 * the process ends.
 */
import { Database } from "bun:sqlite";
import { closeSync, existsSync, openSync } from "node:fs";
import { join } from "node:path";
import { UserError } from "../../../lib/errors.ts";
import { describeFailure, isBusy } from "./failures.ts";
import { prepareFolder } from "./folder.ts";
import { type OnTightened, sayOnStderr } from "./permissions.ts";

/** How long to wait for a server that is just stopping. */
const WAIT_MS = 200;
const LOCK_NAME = "serve.lock";

/** Returns the connection that holds the lock until it is closed. Throws {@link UserError} when another server has the folder. */
export function lockFolder(dataDir: string, onTightened: OnTightened = sayOnStderr): Database {
  prepareFolder(dataDir, onTightened);
  try {
    return lockFile(join(dataDir, LOCK_NAME));
  } catch (error) {
    throw explain(error, dataDir);
  }
}

/** Whether a server or a restore has the folder. Creates nothing. False if this user cannot tell. */
export function isFolderLocked(dataDir: string): boolean {
  const path = join(dataDir, LOCK_NAME);
  if (!existsSync(path)) return false;
  try {
    lockFile(path).close();
    return false;
  } catch (error) {
    return isBusy(error);
  }
}

/** Creates the file if needed. Throws SQLite's error if another process has the lock. */
export function lockFile(path: string): Database {
  // SQLite would create it with the permissions of the umask.
  if (!existsSync(path)) closeSync(openSync(path, "a", 0o600));
  const db = new Database(path, { create: false, readwrite: true, strict: true });
  try {
    db.run(`PRAGMA busy_timeout = ${WAIT_MS}`);
    // Otherwise the transaction creates a journal on the disk, although it writes nothing.
    db.run("PRAGMA journal_mode = MEMORY");
    db.run("BEGIN IMMEDIATE");
    return db;
  } catch (error) {
    db.close();
    throw error;
  }
}

function explain(error: unknown, dataDir: string): UserError {
  if (isBusy(error)) {
    return new UserError(
      `Another signalbox server or restore is already using ${dataDir}: stop it first, or name another folder with --data DIR.`,
    );
  }
  return new UserError(
    `The data folder ${dataDir} cannot be locked (${describeFailure(error)}): name a folder that this user may write to, with --data DIR, or check its disk.`,
  );
}

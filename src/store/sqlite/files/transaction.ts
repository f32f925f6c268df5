/** Transactions of commands, the console and upgrades, and what they have to wait for. */
import { constants, type Database } from "bun:sqlite";
import { isBusy } from "./failures.ts";

/** How long a command waits for another's lock. */
export const COMMAND_BUSY_MS = 10_000;

export const RETRY_MS = 20;

/** For every connection. `busyMs`: how long it waits for another's lock. Nothing in a schema may call functions. */
export function guard(db: Database, busyMs: number): void {
  db.run(`PRAGMA busy_timeout = ${busyMs}`);
  db.run("PRAGMA trusted_schema = OFF");
  db.run("PRAGMA foreign_keys = ON");
}

/** Takes the lock for writing at once, so that what is read in it holds until it is written. */
export function inTransaction<T>(db: Database, work: () => T): T {
  return db.transaction(work).immediate();
}

/** Tries again while SQLite is busy, for locks that its own `busy_timeout` does not wait for. */
export function retryWhileBusy<T>(busyMs: number, work: () => T): T {
  const deadline = performance.now() + busyMs;
  for (;;) {
    try {
      return work();
    } catch (error) {
      if (!isBusy(error) || performance.now() > deadline) throw error;
      Bun.sleepSync(RETRY_MS);
    }
  }
}

/** Whether the path leads to another file than the open one, or to none. Costs one `stat`. */
export function hasMoved(db: Database): boolean {
  // SQLite writes one int; Bun wants 8 bytes.
  const result = new Int32Array(2);
  db.fileControl(constants.SQLITE_FCNTL_HAS_MOVED, result);
  return result[0] !== 0;
}

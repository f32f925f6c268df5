/** One transaction of a command, the console or an upgrade. */
import type { Database } from "bun:sqlite";

/** Takes the lock for writing at once, so that what is read in it holds until it is written. */
export function inTransaction<T>(db: Database, work: () => T): T {
  db.run("BEGIN IMMEDIATE");
  try {
    const result = work();
    db.run("COMMIT");
    return result;
  } catch (error) {
    // Some failures have rolled back already.
    if (db.inTransaction) db.run("ROLLBACK");
    throw error;
  }
}

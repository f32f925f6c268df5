/** One checkpoint: copies what is in the write-ahead log into the database. */
import type { Database } from "bun:sqlite";
import { isTransient } from "./failures.ts";

/**
 * PASSIVE: readers and the writer go on; when the whole log has been copied, the next commit begins it
 * anew. TRUNCATE waits for the readers, and leaves an empty log. A full disk leaves the log as it is,
 * for a later checkpoint; any other failure is thrown.
 */
export function checkpoint(db: Database, mode: "PASSIVE" | "TRUNCATE"): void {
  try {
    db.run(`PRAGMA wal_checkpoint(${mode})`);
  } catch (error) {
    if (!isTransient(error)) throw error;
  }
}

/** Between two batches, where the log has come to more pages than these. */
export function checkpointLongLog(db: Database, pagesMax: number): void {
  const state = db.query<{ log: number }, []>("PRAGMA wal_checkpoint(NOOP)").get();
  if (state !== null && state.log > pagesMax) checkpoint(db, "PASSIVE");
}

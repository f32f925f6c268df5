/** One checkpoint: copies what is in the write-ahead log into the database. */
import type { Database } from "bun:sqlite";
import { isTransient } from "./failures.ts";

/**
 * PASSIVE: readers and the writer go on; once the whole log has been copied, the next commit starts it again
 * from its beginning. TRUNCATE waits for the readers and leaves an empty log. A full disk leaves the log as it
 * is, for a later checkpoint; any other failure is thrown.
 */
export function checkpoint(db: Database, mode: "PASSIVE" | "TRUNCATE"): void {
  try {
    db.run(`PRAGMA wal_checkpoint(${mode})`);
  } catch (error) {
    if (!isTransient(error)) throw error;
  }
}

/** How long the log is, and how much of it is not in the database yet. In pages of 4 KiB. */
export function logPages(db: Database): { inLog: number; toCopy: number } {
  const state = db
    .query<{ log: number; checkpointed: number }, []>("PRAGMA wal_checkpoint(NOOP)")
    .get();
  const { log: inLog = 0, checkpointed = 0 } = state ?? {};
  return { inLog, toCopy: inLog - checkpointed };
}

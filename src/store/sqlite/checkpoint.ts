/** A checkpoint copies the write-ahead log into the database. */
import type { Database } from "bun:sqlite";
import { isTransient } from "./failures.ts";

/**
 * PASSIVE blocks neither readers nor the writer; once the whole log is copied, the next commit starts it
 * again. TRUNCATE waits for readers and leaves an empty log. On a full disk the log stays for a later
 * checkpoint; any other failure is thrown.
 */
export function checkpoint(db: Database, mode: "PASSIVE" | "TRUNCATE"): void {
  try {
    db.run(`PRAGMA wal_checkpoint(${mode})`);
  } catch (error) {
    if (!isTransient(error)) throw error;
  }
}

/** Returns the pages (4 KiB each) in the log, and how many of them are not in the database yet. */
export function logPages(db: Database): { inLog: number; toCopy: number } {
  const state = db
    .query<{ log: number; checkpointed: number }, []>("PRAGMA wal_checkpoint(NOOP)")
    .get();
  const { log: inLog = 0, checkpointed = 0 } = state ?? {};
  return { inLog, toCopy: inLog - checkpointed };
}

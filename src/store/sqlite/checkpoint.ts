/** One checkpoint: copies what is in the write-ahead log into the database, without waiting for anyone. */
import { type Database, SQLiteError } from "bun:sqlite";

/**
 * PASSIVE: readers and the writer go on. When the whole log has been copied, the next commit begins
 * it anew. A full disk leaves the log as it is, for a later checkpoint; any other failure is thrown.
 */
export function checkpoint(db: Database): void {
  try {
    db.run("PRAGMA wal_checkpoint(PASSIVE)");
  } catch (error) {
    if (!(error instanceof SQLiteError) || !/^SQLITE_(BUSY|FULL)/.test(error.code ?? ""))
      throw error;
  }
}

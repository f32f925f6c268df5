/**
 * Room for the write-ahead log before it is needed. A commit that makes the log's file longer has to have
 * the file system's own journal on disk, too: twice the time of an fsync, and a wait for whatever else
 * the journal is at. One that writes into room that is there has not. What is there must have been written:
 * blocks that are only set aside are noted in the journal when they are written first.
 */
import type { Database } from "bun:sqlite";
import { closeSync, fdatasyncSync, fstatSync, ftruncateSync, openSync, writeSync } from "node:fs";
import { systemCode } from "../../domain/errors.ts";
import { isBusy } from "./failures.ts";
import { inTransaction } from "./transaction.ts";

/** What comes into the log until a checkpoint has come to its end (see `checkpointer.ts`), or nearly. */
export const LOG_BYTES = 24 * 1024 * 1024;

const ZEROS = new Uint8Array(1024 * 1024);

/**
 * Makes the log's file as long as {@link LOG_BYTES}, with zeros, which no reader of the log takes for
 * anything. Holds the lock for writing meanwhile, about 0.1 s. Where another process has that lock, or
 * the disk has not so much room, all is left as it is; any other failure is thrown.
 */
export function reserveLogSpace(db: Database): void {
  try {
    inTransaction(db, () => fill(`${db.filename}-wal`));
  } catch (error) {
    if (!isBusy(error)) throw error;
  }
}

function fill(path: string): void {
  const fd = openSync(path, "r+");
  try {
    const { size } = fstatSync(fd);
    if (size >= LOG_BYTES) return;
    try {
      for (let at = size; at < LOG_BYTES;) {
        at += writeSync(fd, ZEROS, 0, Math.min(ZEROS.length, LOG_BYTES - at), at);
      }
      fdatasyncSync(fd);
    } catch (error) {
      if (!isWithoutRoom(error)) throw error;
      ftruncateSync(fd, size);
    }
  } finally {
    closeSync(fd);
  }
}

function isWithoutRoom(error: unknown): boolean {
  return ["ENOSPC", "EDQUOT", "EFBIG"].includes(systemCode(error));
}

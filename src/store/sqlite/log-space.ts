/**
 * Room for the write-ahead log before it is needed. A commit that makes the log's file longer has to have
 * the file system's own journal on disk, too: twice the time of an fsync, and a wait for whatever else
 * the journal is at. One that writes into room that is there has not. What is there must have been written:
 * blocks that are only set aside are noted in the journal when they are written first.
 */
import type { Database } from "bun:sqlite";
import {
  closeSync,
  fdatasyncSync,
  fstatSync,
  ftruncateSync,
  openSync,
  statfsSync,
  writeSync,
} from "node:fs";
import { systemCode } from "../../domain/errors.ts";
import { inTransaction } from "./transaction.ts";

/** What comes into the log until a checkpoint has come to its end (see `checkpointer.ts`), or nearly. */
export const LOG_BYTES = 24 * 1024 * 1024;

/** Where less is free, the database needs it more. */
const FREE_BYTES_MIN = 2 * LOG_BYTES;

const ZEROS = new Uint8Array(512 * 1024);

/**
 * Makes the log's file {@link LOG_BYTES} long with zeros, which no reader of the log takes for anything, under
 * the lock for writing: some 40 ms. Leaves it as it is where the disk has not the room for that. Throws
 * where another process has the lock, and for any other failure of the disk.
 */
export function reserveLogSpace(db: Database): void {
  const { bavail, bsize } = statfsSync(db.filename);
  if (bavail * bsize < FREE_BYTES_MIN) return;
  inTransaction(db, () => {
    const fd = openSync(`${db.filename}-wal`, "r+");
    try {
      lengthen(fd, fstatSync(fd).size);
    } finally {
      closeSync(fd);
    }
  });
}

function lengthen(fd: number, size: number): void {
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
}

function isWithoutRoom(error: unknown): boolean {
  return ["ENOSPC", "EDQUOT", "EFBIG"].includes(systemCode(error));
}

/** For files that appear only when they are complete and on disk. */
import { randomBytes } from "node:crypto";
import { closeSync, fsyncSync, openSync } from "node:fs";
import { basename, dirname, join } from "node:path";

/** The end of every {@link partialPath}. */
export const PARTIAL_END = ".signalbox-partial";

/** A name for a file while it is written, or for the folder in which it is. Nobody can guess it, to put a link there. */
export function partialPath(file: string): string {
  return join(dirname(file), `.${basename(file)}.${randomBytes(8).toString("hex")}${PARTIAL_END}`);
}

/** Waits until a file, or the names in a folder, are on disk. */
export function syncPath(path: string): void {
  const file = openSync(path, "r");
  try {
    fsyncSync(file);
  } finally {
    closeSync(file);
  }
}

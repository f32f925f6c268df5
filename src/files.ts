/** For files that appear only when they are complete and on disk. */
import { closeSync, fsyncSync, openSync } from "node:fs";
import { basename, dirname, join } from "node:path";

/** The name of a file while a process writes it. `removeAbandoned` (`store/sqlite/copy.ts`) looks for it. */
export function partialPath(file: string, pid: number): string {
  return join(dirname(file), `.${basename(file)}.${pid}.signalbox-partial`);
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

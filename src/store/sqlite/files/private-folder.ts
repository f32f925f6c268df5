/**
 * The folder in which a copy is written: only its owner can enter it, so others who may write to the folder around it
 * cannot put another file in the place of the copy.
 */
import {
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  rmdirSync,
  rmSync,
  type Stats,
} from "node:fs";
import { lstat, rm, rmdir } from "node:fs/promises";
import { join } from "node:path";
import { PARTIAL_END } from "../../../lib/files.ts";
import { lockFile } from "./lock.ts";

const COPY = "copy.db";
const LOCK = "lock";

/** One without a lock may be a moment old. */
const UNLOCKED_MS_MAX = 60_000;

/** The copy in a private folder. */
export function copyIn(folder: string): string {
  return join(folder, COPY);
}

/**
 * Creates the folder, and removes it when the result is disposed. Until then its lock shows other processes, in other
 * containers too, that it is in use.
 */
export function createPrivateFolder(folder: string): Disposable {
  mkdirSync(folder, { mode: 0o700 });
  const lock = lockFile(join(folder, LOCK));
  return {
    [Symbol.dispose]: () => {
      lock.close();
      removeNow(folder);
    },
  };
}

/** By name, and only empty: somebody else may have put the folder there. */
function filesIn(folder: string): string[] {
  return [COPY, `${COPY}-journal`, LOCK].map((name) => join(folder, name));
}

/** A disk that refuses this has refused the copy before, and that error is the one to report. */
function removeNow(folder: string): void {
  try {
    for (const file of filesIn(folder)) rmSync(file, { force: true });
    rmdirSync(folder);
  } catch {
    // The next copy to the same place removes it.
  }
}

/** For a process that was killed. Does not block this thread: the disk may hang. */
export async function removePrivateFolder(folder: string): Promise<void> {
  try {
    if (!isOurs(await lstat(folder))) return;
    for (const file of filesIn(folder)) await rm(file, { force: true });
    await rmdir(folder);
  } catch {
    // As above.
  }
}

/** False for a link. */
function isOurs(stats: Stats): boolean {
  return stats.isDirectory() && stats.uid === process.geteuid?.();
}

/** Removes what killed copies have left in a folder. */
export function removeAbandoned(around: string): void {
  for (const name of readdirSync(around)) {
    if (!name.startsWith(".") || !name.endsWith(PARTIAL_END)) continue;
    const folder = join(around, name);
    if (isAbandoned(folder)) removeNow(folder);
  }
}

function isAbandoned(folder: string): boolean {
  try {
    const stats = lstatSync(folder);
    if (!isOurs(stats)) return false;
    const lock = join(folder, LOCK);
    if (!existsSync(lock)) return Date.now() - stats.mtimeMs > UNLOCKED_MS_MAX;
    lockFile(lock).close();
    return true;
  } catch {
    return false;
  }
}

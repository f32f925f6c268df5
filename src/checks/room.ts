/** Whether a copy of the database has room on a disk. */
import { statSync } from "node:fs";
import { stat } from "node:fs/promises";
import { dirname } from "node:path";
import { systemCode, UserError } from "../lib/errors.ts";
import { formatBytes } from "../lib/text/words.ts";
import type { Room } from "../backups/backups.ts";
import { DrillSkipped } from "../backups/drill.ts";
import { databaseFiles } from "../store/open.ts";
import { DISK_FREE_BYTES_MIN, DISK_LOW_BYTES, freeBytes } from "./disk.ts";

/** What a file system needs beside the copy. */
const FILE_SYSTEM_BYTES = 1024 * 1024;
/** The database grows until the next backup. */
const GROWTH = 1.1;

/** A backup is as large as the database, and must leave signals their space if it is on their disk. */
export async function roomForBackup(dataDir: string, dir: string): Promise<Room> {
  const [disk, own] = await Promise.all([diskOf(dir), diskOf(dataDir)]);
  const rest = disk.dev === own.dev ? DISK_FREE_BYTES_MIN : FILE_SYSTEM_BYTES;
  return { free: disk.free, needed: backupBytes(dataDir) + rest };
}

/**
 * Returns the data folder, or else the folder of the backup, if a copy of the backup has room there. It must neither fill
 * the disk of signals nor take the space of the next backup. Throws `DrillSkipped`.
 */
export async function findRoomForDrill(dataDir: string, file: string): Promise<string> {
  const own = await diskOf(dataDir);
  const { size } = await stat(file).catch((error: unknown) => {
    throw new UserError(`${file} is gone, or cannot be read (${systemCode(error)}).`);
  });
  const found: string[] = [];
  for (const folder of [dataDir, dirname(file)]) {
    const { free, dev } = await diskOf(folder);
    const rest = dev === own.dev ? DISK_LOW_BYTES : backupBytes(dataDir) + FILE_SYSTEM_BYTES;
    if (free >= size + rest) return folder;
    found.push(`${formatBytes(size + rest)} in ${folder}, which has ${formatBytes(free)} left`);
  }
  throw new DrillSkipped(
    `There is no room to restore ${file}: it needs ${found.join(", or ")}. Free some space.`,
  );
}

/** With the log. */
function backupBytes(dataDir: string): number {
  const size = statSync(databaseFiles.pathIn(dataDir), { throwIfNoEntry: false })?.size ?? 0;
  return Math.ceil((size + databaseFiles.logBytes(dataDir)) * GROWTH);
}

/** The server creates the folder if it is missing. */
async function diskOf(folder: string): Promise<{ free: number; dev: number }> {
  try {
    return { free: await freeBytes(folder), dev: (await stat(folder)).dev };
  } catch (error) {
    if (dirname(folder) === folder) throw error;
    return diskOf(dirname(folder));
  }
}

/** The backups: whether they are made, sent away, sound and of this database, and whether the next one fits. */
import { statSync } from "node:fs";
import { stat } from "node:fs/promises";
import { dirname } from "node:path";
import ms from "ms";
import { messageOf } from "../lib/errors.ts";
import { shellQuoted } from "../lib/text/shell.ts";
import { SECOND_MS } from "../lib/text/time.ts";
import { formatBytes, formatTime, plural } from "../lib/text/words.ts";
import { backupOf, listBackups, newestFirst } from "../backups/folder.ts";
import { type BackupStatus, initialStatus } from "../backups/backups.ts";
import { databaseFiles } from "../store/open.ts";
import { DISK_FREE_BYTES_MIN, freeBytes } from "./disk.ts";
import { type Context, type Finding, ok, problem, SETTINGS_ADVICE, warning } from "./finding.ts";
import { describeService } from "./service.ts";

/** A backup may take so long, as a multiple of the interval. */
const LATE = 2;
const SAMPLE_MS = 2 * SECOND_MS;
/** What a file system needs beside the copy. */
const FILE_SYSTEM_BYTES = 1024 * 1024;
const COMMAND_ADVICE =
  "run it yourself as the server's user, to see all that it says; if it works there, the service's sandbox forbids it: add ReadWritePaths= with systemctl edit signalbox";

/** What a running server knows, or else what the folder tells; null: this configuration makes none. */
export async function backupsOf({
  server,
  config,
  dataDir,
  files,
}: Context): Promise<BackupStatus | null> {
  const plan = config?.backups ?? null;
  if (server !== null && server.backups !== null) return server.backups;
  if (plan === null) return null;
  if (files === null) return null;
  const own = files.findOwn(files.pathIn(dataDir), await newestFirst(plan.dir));
  return { ...initialStatus(plan), newest: own === null ? null : backupOf(own) };
}

export async function checkBackups(context: Context): Promise<Finding | null> {
  const { server, config, dataDir, files, now, toType, isDeep } = context;
  const backups = await backupsOf(context);
  if (backups === null) {
    if (config === null || files === null) return null;
    return warning(
      "This configuration makes no backups.",
      server === null
        ? `${SETTINGS_ADVICE}, with --backup-dir DIR unless another program makes backups`
        : "add --backup-dir DIR, unless another program makes them",
    );
  }
  const { dir, newest } = backups;
  const failing = checkJob(backups, server?.started_at ?? 0, now);
  if (failing !== null) {
    // A server that starts makes one at once.
    if (server !== null) return failing;
    const serve = `${toType("serve")} --backup-dir ${shellQuoted(dir)}`;
    return warning(failing.sentence, (await describeService(dataDir))?.start ?? serve);
  }
  const { future } = await listBackups(dir);
  if (future.length > 0) {
    return warning(
      `${dir} has ${plural(future.length, "backup")} dated in the future, such as ${future.at(-1)}: they are neither counted nor deleted.`,
      "see that the clock is right (timedatectl), and move them away",
    );
  }
  if (newest === null) return ok("The server has just started, and will make the first one.");
  const again = toType(`backup ${shellQuoted(newest.file)}`);
  if (!(await Bun.file(newest.file).exists())) {
    return problem(
      `The newest backup, ${newest.file}, is gone.`,
      `if a backup command moves it, let it copy it instead; make another one: ${again}`,
    );
  }
  // Only doctor reads the file.
  const damage = config === null ? null : await findDamage(newest.file, isDeep);
  if (damage !== null) {
    return problem(
      `${newest.file} is damaged (${damage}).`,
      `check that disk, and make another backup: ${again}`,
    );
  }
  const sending = describeSending(backups);
  const and = sending === null ? "" : `, and was ${sending}`;
  return ok(`The newest, of ${formatTime(newest.at)}, was verified when it was made${and}.`);
}

/** Null: the job of a server does its work. */
export function checkJob(
  { dir, every_ms, failure, newest, sending, stuck_since: stuckSince }: BackupStatus,
  startedAt: number,
  now: number,
): Finding | null {
  if (stuckSince != null) {
    return problem(
      `A backup has been running since ${formatTime(stuckSince)}: the disk of ${dir} does not answer, or is too slow.`,
      "look at that disk; if it hangs, unmount it, or mount it again",
    );
  }
  if (failure !== null) {
    // A backup by hand would not be one that the server knows.
    return problem(
      `The last backup failed at ${formatTime(failure.at)}: ${failure.reason}`,
      "fix the cause; the server tries again within a minute",
    );
  }
  if ((newest?.at ?? startedAt) + LATE * every_ms <= now) {
    return problem(
      `There is no backup of the last ${ms(LATE * every_ms)} in ${dir}.`,
      "read the server's log, which says why",
    );
  }
  if (sending == null || sending.failure === null) return null;
  const { at, reason, timed_out } = sending.failure;
  return problem(
    `The backup command failed at ${formatTime(at)}: ${reason}`,
    timed_out ? "make it faster, or raise --backup-every" : COMMAND_ADVICE,
  );
}

/** Whether the command has sent the newest backup away; null without a command, or before its first end. */
export function describeSending({ newest, sending }: BackupStatus): string | null {
  if (newest === null || sending == null) return null;
  if (sending.sent === null && sending.failure === null) return null;
  return sending.sent?.file === newest.file ? "sent away" : "not sent away yet";
}

async function findDamage(file: string, isDeep: boolean): Promise<string | null> {
  if (isDeep) return databaseFiles.problemOf(await databaseFiles.verify(file));
  return (await databaseFiles.sample(file, SAMPLE_MS)).damage;
}

/** A copy is as large as the database, and must leave signals their space if it is on their disk. */
export async function checkBackupDisk(context: Context): Promise<Finding | null> {
  const backups = await backupsOf(context);
  if (backups === null) return null;
  const [disk, own] = await Promise.all([diskOf(backups.dir), diskOf(context.dataDir)]);
  const { free } = disk;
  const rest = disk.dev === own.dev ? DISK_FREE_BYTES_MIN : FILE_SYSTEM_BYTES;
  const needed = databaseBytes(context.dataDir) + rest;
  const sentence = `The disk of ${backups.dir} has ${formatBytes(free)} left, and the next backup needs ${formatBytes(needed)}`;
  if (free >= needed) return ok(`${sentence}.`);
  return problem(
    `${sentence}: it may fail.`,
    "free some space there, keep fewer with --backup-keep, or name another disk with --backup-dir",
  );
}

/** With its log. */
function databaseBytes(dataDir: string): number {
  const size = statSync(databaseFiles.pathIn(dataDir), { throwIfNoEntry: false })?.size ?? 0;
  return size + databaseFiles.logBytes(dataDir);
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

/**
 * Throws `UserError` for backups of another database: each backup of this one would replace one of them. Null if
 * {@link checkBackups} says so, too.
 */
export async function checkBackupFolder(context: Context): Promise<Finding | null> {
  const backups = await backupsOf(context);
  if (backups === null) return null;
  const files = await newestFirst(backups.dir);
  try {
    databaseFiles.refuseOthers(databaseFiles.pathIn(context.dataDir), files);
  } catch (error) {
    if (messageOf(error) === backups.failure?.reason) return null;
    throw error;
  }
  return ok(`${plural(files.length, "backup")} in ${backups.dir}, none of another database.`);
}

/** The backups: whether they are made, sent away, sound and of this database, and whether the next one fits. */
import ms from "ms";
import { messageOf } from "../lib/errors.ts";
import { shellQuoted } from "../lib/text/shell.ts";
import { SECOND_MS } from "../lib/text/time.ts";
import { formatBytes, formatTime, plural } from "../lib/text/words.ts";
import { readDrills } from "../backups/drill.ts";
import { backupOf, listBackups, newestFirst } from "../backups/folder.ts";
import { describeKeep } from "../backups/keep.ts";
import { type BackupStatus, initialStatus } from "../backups/status.ts";
import { databaseFiles } from "../store/open.ts";
import { type Context, type Finding, ok, problem, SETTINGS_ADVICE, warning } from "./finding.ts";
import { roomForBackup } from "./room.ts";
import { describeService } from "./service.ts";

/** A backup may take so long, as a multiple of the interval. */
const LATE = 2;
const SAMPLE_MS = 2 * SECOND_MS;
/** Sizes in words are rounded down. */
const MIB = 1024 * 1024;
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
  const { drill, ...status } = initialStatus(plan);
  return {
    ...status,
    newest: own === null ? null : backupOf(own),
    drill: drill ? { ...drill, ...(await readDrills(plan.dir)) } : null,
  };
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

export async function checkBackupDisk(context: Context): Promise<Finding | null> {
  const backups = await backupsOf(context);
  if (backups === null) return null;
  const { dir } = backups;
  const { free, needed } = await roomForBackup(context.dataDir, dir);
  const sentence = `The disk of ${dir} has ${formatBytes(free)} left, and the next backup needs ${formatBytes(needed)}`;
  if (free >= needed) return ok(`${sentence}.`);
  return problem(
    `${sentence}: it is tried, and may fail.`,
    `free ${formatBytes(needed - free + MIB)} there (what takes it: du -ah ${shellQuoted(dir)} | sort -h | tail), keep fewer with --backup-keep, or name another disk with --backup-dir`,
  );
}

/** Whether the newest backups could be restored when that was last tried. */
export async function checkDrill(context: Context): Promise<Finding | null> {
  const { server, now, toType } = context;
  const backups = await backupsOf(context);
  if (backups?.drill == null) return null;
  const { last, passed_at: passedAt, every_ms: everyMs } = backups.drill;
  if (last !== null && last.is_skipped) {
    return warning(
      `The drill at ${formatTime(last.at)} was skipped: ${last.failure}`,
      "the server tries again with the next backup",
    );
  }
  if (last !== null && last.failure !== null) {
    return problem(
      `The drill of ${last.file} failed at ${formatTime(last.at)}: ${last.failure}`,
      `fix the cause; the server tries again with the next backup, or try it now: ${toType(`verify --drill ${shellQuoted(backups.dir)}`)}`,
    );
  }
  if ((passedAt ?? server?.started_at ?? 0) + LATE * everyMs <= now) {
    return warning(
      `No drill of the last ${ms(LATE * everyMs)} restored a backup of ${backups.dir}.`,
      server === null
        ? "start the server, which makes one"
        : "read the server's log, which says why",
    );
  }
  if (last === null) return ok("None yet: the first follows a backup.");
  return ok(
    `At ${formatTime(last.at)}, ${last.file} was restored and verified, and was the same as the database.`,
  );
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
  const oldest = files.at(-1);
  const since = oldest === undefined ? "" : `, the oldest of ${formatTime(backupOf(oldest).at)}`;
  return ok(
    `${plural(files.length, "backup")} in ${backups.dir}, none of another database${since}; ${describeKeep(backups.keep)}.`,
  );
}

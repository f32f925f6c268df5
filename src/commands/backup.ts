/** `signalbox backup`: a consistent copy of the database, while the server runs. */
import { type Stats, statSync } from "node:fs";
import { stat } from "node:fs/promises";
import { dirname, resolve } from "node:path";
import { Argument, Option } from "commander";
import { DISK_FREE_BYTES_MIN } from "../checks/disk.ts";
import { findRoomForDrill, roomForBackup } from "../checks/room.ts";
import { UsageError, UserError } from "../lib/errors.ts";
import { shellQuoted } from "../lib/text/shell.ts";
import type { CopyOptions, Drilled } from "../domain/storage/files.ts";
import { createLog } from "../lib/log.ts";
import { BackupJob, type BackupWork } from "../backups/backups.ts";
import { refuseDataFolder } from "../backups/folder.ts";
import type { Keep } from "../backups/keep.ts";
import { databaseFiles, refuseForeignFolder } from "../store/open.ts";
import { type DataOptions, defineCommand } from "../cli/define.ts";
import { refuseStore } from "../cli/folder-only.ts";
import { requireFolder, toType } from "../cli/hint.ts";
import { readKeep } from "../cli/keep.ts";
import { readCommand, readInterval, readSchedule } from "../cli/options.ts";
import { formatTime, plural, printChanged, printNote } from "../cli/print.ts";
import { showProgress } from "../cli/progress.ts";
import { selfProgram } from "../lib/self.ts";
import { stopSignal } from "../cli/stop-signal.ts";
import { settings } from "./serve/settings.ts";

interface BackupOptions extends DataOptions {
  readonly every?: number;
  readonly keep?: Keep;
  readonly command?: string;
  readonly drill?: number;
}

export const backupCommand = defineCommand({
  name: "backup",
  description: "copy the database to a file, verified, while the server runs",
  arguments: [new Argument("<target>", "the file; with --every, the folder of the backups")],
  options: [
    new Option("--every <span>", "make a backup at this interval, such as 1h").argParser(
      readInterval,
    ),
    new Option(
      "--keep <n>",
      `with --every: ${settings.backupKeep.text} (default: ${settings.backupKeep.fallback})`,
    ).argParser(readKeep),
    new Option(
      "--command <command>",
      "with --every: shell command that sends each backup away; {} is its path",
    ).argParser(readCommand),
    new Option("--drill <span>", `with --every: ${settings.backupDrill.text}`).argParser(
      readSchedule,
    ),
  ],
  adds: "data and json",
  notes: `
The copy is a snapshot, synced and verified before it gets its name. It replaces an existing backup of
that name, and no other file. It contains the hashes of keys, never a key.`,
  examples: [
    "signalbox backup /backup/signalbox.db --data /var/lib/signalbox",
    "signalbox backup --every 1h --keep 24h,7d,4w --drill 1w /backup",
    "signalbox backup --every 1h /backup --command 'rclone copy {} remote:signalbox'",
    "signalbox backup /backup/signalbox.db --json | jq .signals",
  ],
  run: (options: BackupOptions, target: string) => {
    refuseStore("signalbox backup", options.data);
    return options.every === undefined
      ? backUpOnce(resolve(target), options)
      : backUpEvery(resolve(target), options.every, options);
  },
});

/** Makes one backup, in a process of its own. Returns it as `--json` and the log report it. */
async function backUp(
  dataDir: string,
  file: string,
  options: Pick<CopyOptions, "earlier" | "signal" | "onProgress">,
) {
  refuseForeignFolder(dataDir);
  const { signals, newest_id } = await databaseFiles.copyInProcess(
    databaseFiles.pathIn(dataDir),
    file,
    {
      program: selfProgram(),
      freeBytesMin: DISK_FREE_BYTES_MIN,
      ...options,
    },
  );
  return { file, bytes: (await stat(file)).size, signals, newest_id };
}

/** Restores a backup where there is room, verifies it, and compares it, in a process of its own. */
export async function drill(
  dataDir: string,
  file: string,
  options: Pick<CopyOptions, "signal" | "onProgress">,
): Promise<Drilled> {
  refuseForeignFolder(dataDir);
  const around = await findRoomForDrill(dataDir, file);
  return databaseFiles.drillInProcess(file, dataDir, around, {
    program: selfProgram(),
    freeBytesMin: DISK_FREE_BYTES_MIN,
    ...options,
  });
}

/** For a {@link BackupJob}. */
export function backupWork(dataDir: string): BackupWork {
  const path = databaseFiles.pathIn(dataDir);
  return {
    make: (file, making) => backUp(dataDir, file, making),
    drill: (file, signal) => drill(dataDir, file, { signal }),
    roomIn: (dir) => roomForBackup(dataDir, dir),
    findOwn: (files, signal) =>
      databaseFiles.findOwnInProcess(path, files, { program: selfProgram(), signal }),
  };
}

async function backUpOnce(file: string, options: BackupOptions): Promise<void> {
  const { data, json } = options;
  const idle = (["keep", "command", "drill"] as const).find((name) => options[name] !== undefined);
  if (idle !== undefined) {
    throw new UsageError(`--${idle} needs --every: signalbox backup --every 1h DIR`);
  }
  const replaced = refuseTarget(file, resolve(data));
  const startedAt = performance.now();
  const backup = await showProgress("backup", (sink) =>
    backUp(resolve(data), file, { ...sink, earlier: replaced === null ? [] : [file] }),
  );
  const duration_ms = Math.round(performance.now() - startedAt);
  if (json) printChanged({ ...backup, duration_ms });
  if (replaced !== null) {
    printNote(`${file} replaced the backup of ${formatTime(replaced.mtimeMs)}.`);
  }
  const signals = plural(backup.signals, "signal");
  printNote(
    `${file}: ${signals}, the newest ${backup.newest_id ?? "-"}, verified. To restore it, stop the server, then type: ${toType(`restore ${shellQuoted(file)} --force`, data)}`,
  );
}

/** Returns the backup that will be replaced, or null. Throws `UserError` for any other file that is not empty. */
function refuseTarget(file: string, dataDir: string): Stats | null {
  const folder = dirname(file);
  requireFolder(folder);
  refuseDataFolder(folder, dataDir);
  const stats = statSync(file, { throwIfNoEntry: false });
  if (stats === undefined) return null;
  if (stats.isDirectory()) {
    throw new UserError(
      `${file} is a folder: name a file in it, such as ${databaseFiles.pathIn(file)}, or make backups at an interval with: signalbox backup --every 1h --keep 24 ${shellQuoted(file)}`,
    );
  }
  if (!stats.isFile() || (stats.size > 0 && !databaseFiles.isCopy(file))) {
    throw new UserError(`${file} is not a backup, and was left as it is: name another file.`);
  }
  return stats.size === 0 ? null : stats;
}

/** Runs until SIGTERM, SIGINT or SIGHUP. */
async function backUpEvery(dir: string, everyMs: number, options: BackupOptions): Promise<void> {
  if (options.json) {
    throw new UsageError("--json is for one backup; with --every the log reports each.");
  }
  if (dir.endsWith(".db")) {
    throw new UsageError(
      `With --every, name a folder for the backups, such as ${shellQuoted(dirname(dir))}.`,
    );
  }
  const dataDir = resolve(options.data);
  refuseDataFolder(dir, dataDir);
  const log = await createLog("info");
  const { keep = settings.backupKeep.fallback, command = null, drill: drillMs = null } = options;
  const plan = { dir, everyMs, keep, command, drillMs };
  const job = new BackupJob(plan, backupWork(dataDir), log.logger);
  await stopSignal(log);
  await job.stop();
  log.logger.info("stopped");
  await log.end();
}

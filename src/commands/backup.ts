/** `signalbox backup`: a consistent copy of the database, while the server runs. */
import { existsSync, realpathSync, statSync } from "node:fs";
import { dirname, resolve } from "node:path";
import { Command, Option } from "commander";
import { UsageError, UserError } from "../domain/errors.ts";
import { shellQuoted } from "../domain/shell.ts";
import { createLog } from "../log.ts";
import { BackupJob } from "../ops/backups.ts";
import { DISK_FREE_BYTES_MIN } from "../ops/health.ts";
import { copyInProcess, databasePath, isCopy } from "../store/open.ts";
import { toType } from "./hint.ts";
import { dataOption, jsonOption, readInterval, readPositive } from "./options.ts";
import { printJson, printNote } from "./print.ts";
import { showProgress } from "./progress.ts";
import { selfProgram } from "./self.ts";
import { stopSignal } from "./stop-signal.ts";
import { defaults } from "../config.ts";

interface BackupOptions {
  readonly data: string;
  readonly json?: true;
  readonly every?: number;
  readonly keep?: number;
}

/** A copy as `--json` and the log of backups tell it. */
export interface Backup {
  readonly file: string;
  readonly bytes: number;
  readonly signals: number;
  readonly newest_id: string | null;
}

export function backupCommand(): Command {
  return new Command("backup")
    .description("copy the database to a file, verified, while the server runs")
    .argument("<target>", "the file; with --every, the folder of the backups")
    .addOption(
      new Option("--every <span>", "go on: a backup after every span, such as 1h").argParser(
        readInterval,
      ),
    )
    .addOption(
      new Option(
        "--keep <n>",
        `with --every: keep the newest backups (default: ${defaults.backupKeep})`,
      ).argParser(readPositive),
    )
    .addOption(jsonOption())
    .addOption(dataOption())
    .addHelpText(
      "after",
      `
The copy is of one moment, synced and verified before it gets its name. A backup that is there under
this name is replaced; nothing else is. It holds the hashes of the keys, never a key.

Examples:
  $ signalbox backup /backup/signalbox.db --data /var/lib/signalbox
  $ signalbox backup --every 1h --keep 24 /backup
  $ signalbox backup /backup/signalbox.db --json | jq .signals`,
    )
    .action((target: string, options: BackupOptions) =>
      options.every === undefined
        ? backUpOnce(resolve(target), options)
        : backUpEvery(resolve(target), options.every, options),
    );
}

/** One backup, in a process of its own. */
export async function backUp(
  dataDir: string,
  file: string,
  { signal, onProgress }: Pick<Parameters<typeof copyInProcess>[2], "signal" | "onProgress"> = {},
): Promise<Backup> {
  const { signals, newest_id } = await copyInProcess(databasePath(dataDir), file, {
    program: selfProgram(),
    freeBytesMin: DISK_FREE_BYTES_MIN,
    signal,
    onProgress,
  });
  return { file, bytes: statSync(file).size, signals, newest_id };
}

async function backUpOnce(file: string, options: BackupOptions): Promise<void> {
  if (options.keep !== undefined) {
    throw new UsageError("--keep goes with --every: signalbox backup --every 1h --keep 24 DIR");
  }
  refuseTarget(file, resolve(options.data));
  const startedAt = performance.now();
  const backup = await showProgress("backup", (progress) =>
    backUp(resolve(options.data), file, progress),
  );
  const duration_ms = Math.round(performance.now() - startedAt);
  if (options.json) printJson({ ...backup, duration_ms });
  printNote(
    `${file}: ${backup.signals} signals, the newest ${backup.newest_id ?? "-"}, verified. Bring it back with: ${toType(`restore ${shellQuoted(file)}`, options.data)}`,
  );
}

/** Nothing but a backup is ever replaced by one. Throws `UserError`. */
function refuseTarget(file: string, dataDir: string): void {
  if (!existsSync(dirname(file))) {
    throw new UserError(
      `There is no folder ${dirname(file)}: create it with: mkdir -p ${dirname(file)}`,
    );
  }
  refuseDataFolder(dirname(file), dataDir);
  const there = statSync(file, { throwIfNoEntry: false });
  if (there === undefined) return;
  if (there.isDirectory()) {
    throw new UserError(
      `${file} is a folder: name a file in it, such as ${databasePath(file)}, or go on for ever with: signalbox backup --every 1h --keep 24 ${shellQuoted(file)}`,
    );
  }
  if (!there.isFile() || (there.size > 0 && !isCopy(file))) {
    throw new UserError(`${file} is not a backup, and was left as it is: name another file.`);
  }
}

/** Who loses the folder would lose its backups with it. Throws `UserError`. */
export function refuseDataFolder(dir: string, dataDir: string): void {
  if (!existsSync(dir) || !existsSync(dataDir)) return;
  if (realpathSync(dir) !== realpathSync(dataDir)) return;
  throw new UserError(`${dataDir} is the data folder: put backups into another one.`);
}

/** Until SIGTERM or SIGINT. */
async function backUpEvery(dir: string, everyMs: number, options: BackupOptions): Promise<void> {
  if (options.json)
    throw new UsageError("--json is for one backup; with --every the log tells of each.");
  refuseDataFolder(dir, resolve(options.data));
  const log = await createLog("info");
  const plan = { dir, everyMs, keep: options.keep ?? defaults.backupKeep };
  const dataDir = resolve(options.data);
  const job = new BackupJob(plan, (file, signal) => backUp(dataDir, file, { signal }), log.logger);
  await stopSignal(log);
  await job.stop();
  log.logger.info("stopped");
  await log.end();
}

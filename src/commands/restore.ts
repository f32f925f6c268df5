/** `signalbox restore`: a backup in the place of the database. */
import { mkdirSync } from "node:fs";
import { resolve } from "node:path";
import { Command } from "commander";
import { UserError } from "../domain/errors.ts";
import { timeStamp } from "../ops/backups.ts";
import {
  beginRestore,
  copyInProcess,
  DamageError,
  databasePath,
  giveUpRestore,
  hasContent,
  lockFolder,
  putInPlace,
  type Restored,
  restoringPath,
  type Verification,
  verifyDatabase,
} from "../store/open.ts";
import { toType } from "./hint.ts";
import { dataOption, jsonOption, refuseMissing } from "./options.ts";
import { printJson, printNote } from "./print.ts";
import { showProgress } from "./progress.ts";
import { selfProgram } from "./self.ts";

interface RestoreOptions {
  readonly data: string;
  readonly force?: true;
  readonly json?: true;
}

export function restoreCommand(): Command {
  return new Command("restore")
    .description("put a backup in the place of the database; the server must be stopped")
    .argument("<file>", "the backup")
    .option("--force", "replace a database that is there; it is kept beside, under another name")
    .addOption(jsonOption())
    .addOption(dataOption())
    .addHelpText(
      "after",
      `
The backup is verified before and after. Where the database before can still be read, its desks and
keys are taken over: what was minted or revoked since the backup stays so. Signals that came after the
backup are not in it; the bots' retries are stored as new ones.

Examples:
  $ signalbox restore /backup/signalbox.db --data /var/lib/signalbox
  $ signalbox restore /backup/signalbox.db --data /var/lib/signalbox --force`,
    )
    .action(async (file: string, options: RestoreOptions) => {
      const dataDir = resolve(options.data);
      refuseMissing(file);
      const verification = verifyBackup(resolve(file));
      const restored = await restore(resolve(file), dataDir, options.force === true);
      const { signals, newest_id } = verification;
      if (options.json) printJson({ data: dataDir, signals, newest_id, ...restored });
      printRestored(restored, options.data);
      printNote(
        `${dataDir} has ${signals} signals, the newest ${newest_id ?? "-"}. Start the server with: ${toType("serve", options.data)}`,
      );
    });
}

function verifyBackup(file: string): Verification {
  try {
    const verification = verifyDatabase(file);
    if (verification.ok) return verification;
    const { schema } = verification.checks;
    if (!schema.ok) throw foreignBackup(file, schema.detail);
    throw damagedBackup(file, Object.values(verification.checks).find(({ ok }) => !ok)?.detail);
  } catch (error) {
    throw error instanceof DamageError ? damagedBackup(file, error.problem) : error;
  }
}

function foreignBackup(file: string, problem: string): UserError {
  return new UserError(
    `${file} does not have Signalbox's schema (${problem}), and nothing was changed: restore another backup.`,
  );
}

function damagedBackup(file: string, problem = ""): UserError {
  return new UserError(
    `${file} is damaged (${problem}), and nothing was changed: restore another backup.`,
  );
}

/** The lock keeps servers away until the database is in its place. */
async function restore(file: string, dataDir: string, isForced: boolean): Promise<Restored> {
  mkdirSync(dataDir, { recursive: true, mode: 0o700 });
  const path = databasePath(dataDir);
  const lock = lockFolder(dataDir);
  try {
    if (hasContent(path) && !isForced) {
      throw new UserError(
        `${dataDir} has a database, and nothing was changed: to put the backup in its place (it is kept, under another name), add --force.`,
      );
    }
    const begun = beginRestore(path);
    try {
      await showProgress("restore", (progress) =>
        copyInProcess(file, restoringPath(path), {
          program: selfProgram(),
          freeBytesMin: 0,
          ...progress,
        }),
      );
    } catch (error) {
      giveUpRestore(begun);
      throw error;
    }
    return putInPlace(begun, timeStamp(Date.now()));
  } finally {
    lock.release();
  }
}

function printRestored({ kept, keys, activity_kept: activity }: Restored, dataDir: string): void {
  if (kept !== null) printNote(`What was there is kept as ${kept}`);
  if (activity !== null) {
    printNote(`The desks' activity is counted from zero; what there was is kept as ${activity}`);
  }
  if (keys === null || keys.failure !== null) {
    const why =
      keys === null
        ? ""
        : ` (those of the database before could not be taken over: ${keys.failure})`;
    printNote(
      `Keys are as they were at the time of the backup${why}: revoke again what was revoked since; see them with: ${toType("key list", dataDir)}`,
    );
  } else {
    printNote(
      `Keys are as they were before: ${keys.minted} minted and ${keys.revoked} revoked since the backup.`,
    );
  }
}

/** `signalbox restore`: replaces the database by a backup. */
import { resolve } from "node:path";
import { Argument, Option } from "commander";
import { describeService } from "../checks/service.ts";
import { UserError } from "../lib/errors.ts";
import type { Restored, Verification } from "../domain/storage/files.ts";
import { timeStamp } from "../backups/folder.ts";
import { databaseFiles } from "../store/open.ts";
import { type DataOptions, defineCommand } from "../cli/define.ts";
import { refuseStore } from "../cli/folder-only.ts";
import { toType } from "../cli/hint.ts";
import { requireFile } from "../cli/options.ts";
import { plural, printChanged, printNote } from "../cli/print.ts";
import { showProgress } from "../cli/progress.ts";
import { selfProgram } from "../lib/self.ts";

export const restoreCommand = defineCommand({
  name: "restore",
  description: "replace the database by a backup; the server must be stopped",
  arguments: [new Argument("<file>", "the backup")],
  options: [new Option("--force", "replace an existing database, and keep it under another name")],
  adds: "data and json",
  notes: `
Verifies the backup before and after. What was ended in the previous database stays so, if it can be read: revoked
and rotated keys, removed members and passkeys, used links, locked passwords and archived desks. Keys minted after the
backup are kept. The rest is as in the backup. Signals that came after it are not in it; when bots retry them, they are
stored as new ones. Members must sign in to the console again.`,
  examples: [
    "signalbox restore /backup/signalbox.db --data /var/lib/signalbox",
    "signalbox restore /backup/signalbox.db --data /var/lib/signalbox --force",
  ],
  run: async ({ data, force, json }: DataOptions & { force?: true }, file: string) => {
    refuseStore(
      "signalbox restore",
      data,
      (place) =>
        `restore ${place} with pg_restore, or with pgBackRest or Barman for point-in-time recovery (PITR). For a folder, leave out --store, and unset SIGNALBOX_STORE`,
    );
    const dataDir = resolve(data);
    requireFile(file, `name a backup in it, such as ${databaseFiles.pathIn(file)}`);
    const { signals, newest_id } = await verifyBackup(resolve(file));
    const options = {
      isForced: force === true,
      stamp: timeStamp(Date.now()),
      program: selfProgram(),
      freeBytesMin: 0,
    };
    const restored = await showProgress("restore", (sink) =>
      databaseFiles.restore(resolve(file), dataDir, { ...options, ...sink }),
    );
    if (json) printChanged({ data: dataDir, signals, newest_id, ...restored });
    printRestored(restored, data);
    const service = await describeService(dataDir);
    printNote(
      `${dataDir} has ${plural(signals, "signal")}, the newest ${newest_id ?? "-"}. Start the server with: ${service?.start ?? toType("serve", data)}`,
    );
  },
});

async function verifyBackup(file: string): Promise<Verification> {
  const verification = await databaseFiles.verify(file);
  const problem = databaseFiles.problemOf(verification);
  if (problem === null) return verification;
  const { schema } = verification.checks;
  throw new UserError(
    schema.ok === false
      ? `${file} does not have Signalbox's schema (${schema.detail}), and nothing was changed: restore another backup.`
      : `${file} is damaged (${problem}), and nothing was changed: restore another backup.`,
  );
}

function printRestored(restored: Restored, dataDir: string): void {
  const { kept, keys, missing_signals, archived_desks } = restored;
  if (kept !== null) printNote(`The previous database is kept as ${kept}`);
  if (missing_signals !== null && missing_signals > 0) {
    const [are, them] = missing_signals === 1 ? ["is", "it"] : ["are", "them"];
    printNote(
      `${plural(missing_signals, "signal")} ${are} not in the backup: only the previous database has ${them}.`,
    );
  }
  if (missing_signals === null && kept !== null) {
    printNote("Signals that only the previous database has cannot be counted.");
  }
  printKeys(keys, dataDir);
  if (archived_desks.length > 0) {
    printNote(
      `Archived, so their keys and members are refused: ${archived_desks.join(", ")}. Bring a desk back with: ${toType("desk archive DESK --undo", dataDir)}`,
    );
  }
}

function printKeys(keys: Restored["keys"], dataDir: string): void {
  if (keys === null || keys.failure !== null) {
    if (keys !== null) {
      printNote(`Nothing was carried over from the previous database: ${keys.failure}`);
    }
    const lists = ["key list", "member list DESK", "desk list"].map((list) =>
      toType(list, dataDir),
    );
    printNote(
      `Desks, keys and members are as in the backup: repeat what was done after it, such as revoking keys, removing and resetting members, and archiving desks. List them with: ${lists.join("; ")}`,
    );
    return;
  }
  const { minted, revoked, only_in_backup } = keys;
  printNote(
    `Carried over from the previous database: ${plural(minted, "key")} that the backup does not have, and ${plural(revoked, "revocation")}. The rest is as in the backup.`,
  );
  if (only_in_backup > 0) {
    const [are, them] = only_in_backup === 1 ? ["is", "it"] : ["are", "them"];
    printNote(
      `${plural(only_in_backup, "key")} ${are} only in the backup: check ${them} with: ${toType("key list", dataDir)}`,
    );
  }
}

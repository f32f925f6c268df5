/** `signalbox verify`: checks a database or a backup. */
import { statSync } from "node:fs";
import { resolve } from "node:path";
import { Argument, type Command, Option } from "commander";
import { UsageError, UserError } from "../lib/errors.ts";
import { showHidden } from "../lib/text/hidden.ts";
import { shellQuoted } from "../lib/text/shell.ts";
import type { Verification } from "../domain/storage/files.ts";
import { newestFirst } from "../backups/folder.ts";
import { databaseFiles, refuseForeignFolder, verifyStore } from "../store/open.ts";
import { isStoreUrl } from "../lib/place.ts";
import { type DataOptions, defineCommand } from "../cli/define.ts";
import { refuseStore } from "../cli/folder-only.ts";
import { requireFile } from "../cli/options.ts";
import { count, plural, printData, printJson, printNote } from "../cli/print.ts";
import { showProgress } from "../cli/progress.ts";
import { drill } from "./backup.ts";

export const verifyCommand = defineCommand({
  name: "verify",
  description: "check everything in the database: exit code 0 if all of it is sound",
  arguments: [new Argument("[file]", "a backup, instead of the database in the data folder")],
  options: [
    new Option(
      "--drill",
      "also restore the backup beside the data, and compare it with the database; of a folder, the newest one",
    ),
  ],
  adds: "data and json",
  notes: `
Changes nothing, and may run beside a server. It reads the whole database several times, and the
server's log grows meanwhile. With --store, pages and indexes are not checked: pg_amcheck does that.
In JSON, a check that did not run has "ok": null.

--drill changes nothing, either: it restores to a new folder in the data folder, or where the backup is,
whichever has room, and removes it. Every value of every signal in the backup must be as in the database.`,
  examples: [
    "signalbox verify --data /var/lib/signalbox",
    "signalbox verify /backup/signalbox-20261121T115119Z.db",
    "signalbox verify --drill /backup --data /var/lib/signalbox",
    "signalbox verify --json | jq .checks",
    "signalbox verify --store postgres://signalbox@db.example.com/signalbox",
  ],
  run: async (
    { data, json, drill: isDrill }: DataOptions & { drill?: true },
    file: string | undefined,
    command: Command,
  ) => {
    if (isDrill) return tryBackup(file, data, json);
    if (isStoreUrl(data)) {
      if (file !== undefined) {
        refuseStore(
          "verify FILE",
          data,
          () => "leave out --store, and unset SIGNALBOX_STORE, to verify this file",
        );
      }
      return verifyDatabaseAt(data, json);
    }
    const path = resolve(file ?? databaseFiles.pathIn(data));
    if (file === undefined) refuseForeignFolder(resolve(data));
    else {
      if (command.getOptionValueSource("data") === "cli") {
        throw new UsageError(`${file} is verified without a data folder: leave out --data.`);
      }
      requireFile(file, `verify its database with: signalbox verify --data ${shellQuoted(file)}`);
    }
    const verification = await databaseFiles.verify(path);
    if (json) printJson(verification);
    else printVerification(verification);
    if (verification.ok) return;
    const problem = explain(path, verification);
    if (file !== undefined) {
      throw new UserError(`${problem}: do not restore this backup, use another one.`);
    }
    const next = "stop the server, then restore a backup (the current database is kept)";
    throw new UserError(`${problem}: ${next}`, "restore FILE --force");
  },
});

async function tryBackup(
  named: string | undefined,
  data: string,
  json: true | undefined,
): Promise<void> {
  refuseStore("verify --drill", data);
  if (named === undefined) {
    throw new UsageError(
      "--drill needs a backup, or their folder: signalbox verify --drill /backup",
    );
  }
  const isFolder = statSync(named, { throwIfNoEntry: false })?.isDirectory() === true;
  const [file] = isFolder ? await newestFirst(resolve(named)) : [resolve(named)];
  if (file === undefined) {
    throw new UserError(`${named} has no backup of --backup-dir or --every: name a file.`);
  }
  requireFile(file, "name a backup in it");
  const drilled = await showProgress("drill", (sink) => drill(resolve(data), file, sink));
  if (json) printJson({ file, ...drilled });
  const { signals, newest_id, newer_signals } = drilled;
  printNote(
    `${file} was restored, verified, and removed again. Each of its ${plural(signals, "signal")}, the newest ${newest_id ?? "-"}, is as in the database, which has ${count(newer_signals)} newer.`,
  );
}

async function verifyDatabaseAt(url: string, json: true | undefined): Promise<void> {
  const verification = await verifyStore(url);
  if (json) printJson(verification);
  else printVerification(verification);
  if (verification.ok) return;
  throw new UserError(
    `${verification.file} is damaged: stop all servers, then go back to a moment before with pgBackRest or Barman (PITR), or restore a dump.`,
  );
}

function explain(path: string, { checks }: Verification): string {
  return checks.schema.ok !== false
    ? `${path} is damaged`
    : `${path} does not have Signalbox's schema, and nothing else in it was read. If you changed it with another program, undo that; if not`;
}

function printVerification({ checks, signals, newest_id, version }: Verification): void {
  for (const [name, { ok, detail }] of Object.entries(checks)) {
    // A damaged file may have anything in its definitions.
    printData(showHidden(`${name}: ${ok === false ? `failing (${detail})` : detail}`));
  }
  if (version === 0 || checks.schema.ok === false) return;
  printData(
    `${plural(signals, "signal")}, the newest ${newest_id ?? "-"}, database version ${version}`,
  );
}

/** `signalbox verify`: whether a database is what it should be. */
import { statSync } from "node:fs";
import { resolve } from "node:path";
import { Command } from "commander";
import { UserError } from "../domain/errors.ts";
import { shellQuoted } from "../domain/shell.ts";
import { DamageError, databasePath, type Verification, verifyDatabase } from "../store/open.ts";
import { dataOption, jsonOption, refuseMissing } from "./options.ts";
import { printData, printJson } from "./print.ts";

export function verifyCommand(): Command {
  return new Command("verify")
    .description("look at everything in the database: exit code 0 when all of it is sound")
    .argument("[file]", "a backup, instead of the database in the data folder")
    .addOption(jsonOption())
    .addOption(dataOption())
    .addHelpText(
      "after",
      `
Changes nothing, and may run beside a server; it reads the whole database several times, and the
server's log grows meanwhile.

Examples:
  $ signalbox verify --data /var/lib/signalbox
  $ signalbox verify /backup/signalbox-20261121T115119Z.db
  $ signalbox verify --json | jq .checks`,
    )
    .action((file: string | undefined, options: { json?: true; data: string }) => {
      if (file !== undefined) refuseFolder(file);
      const path = resolve(file ?? databasePath(options.data));
      const verification = file === undefined ? verifyDatabase(path) : verifyBackup(path);
      if (options.json) printJson(verification);
      else printVerification(verification);
      if (verification.ok) return;
      const problem = explain(path, verification);
      if (file !== undefined) throw new UserError(`${problem}: ${USE_ANOTHER}`);
      const next = "stop the server, and restore a backup, which keeps the present database,";
      throw new UserError(`${problem}: ${next}`, "restore FILE --force");
    });
}

const USE_ANOTHER = "do not restore this backup, use another one.";

function verifyBackup(path: string): Verification {
  try {
    return verifyDatabase(path);
  } catch (error) {
    if (!(error instanceof DamageError)) throw error;
    throw new UserError(`${path} is damaged (${error.problem}): ${USE_ANOTHER}`);
  }
}

function refuseFolder(file: string): void {
  if (statSync(file, { throwIfNoEntry: false })?.isDirectory() !== true) return refuseMissing(file);
  throw new UserError(
    `${file} is a folder: verify its database with: signalbox verify --data ${shellQuoted(file)}`,
  );
}

function explain(path: string, { checks }: Verification): string {
  return checks.schema.ok
    ? `${path} is damaged`
    : `${path} does not have Signalbox's schema, and nothing else in it was read. If you changed it with another program, undo that; if not`;
}

function printVerification({ checks, signals, newest_id, version }: Verification): void {
  for (const [name, { ok, detail }] of Object.entries(checks)) {
    printData(`${name}: ${ok ? "ok" : `failing (${detail})`}`);
  }
  if (!checks.schema.ok) return;
  printData(`${signals} signals, the newest ${newest_id ?? "-"}, database version ${version}`);
}

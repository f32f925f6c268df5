/** `signalbox verify`: whether a database is what it should be. */
import { join, resolve } from "node:path";
import { Command } from "commander";
import { UserError } from "../domain/errors.ts";
import { DATABASE_NAME } from "../store/sqlite/folder.ts";
import { type Verification, verifyDatabase } from "../store/sqlite/verify.ts";
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
      if (file !== undefined) refuseMissing(file);
      const path = resolve(file ?? join(options.data, DATABASE_NAME));
      const verification = verifyDatabase(path);
      if (options.json) printJson(verification);
      else printVerification(verification);
      if (!verification.ok) {
        throw new UserError(explain(path, verification), "restore FILE --force");
      }
    });
}

function explain(path: string, { checks }: Verification): string {
  const restore = "stop the server, and restore a backup, which keeps the present database,";
  return checks.schema.ok
    ? `${path} is damaged: ${restore}`
    : `${path} does not have Signalbox's schema, and nothing else in it was read: if you changed it with another program, undo that; if not, ${restore}`;
}

function printVerification({ checks, signals, newest_id, version }: Verification): void {
  for (const [name, { ok, detail }] of Object.entries(checks)) {
    printData(`${name}: ${ok ? "ok" : `failing (${detail})`}`);
  }
  if (!checks.schema.ok) return;
  printData(`${signals} signals, the newest ${newest_id ?? "-"}, database version ${version}`);
}

/** `signalbox audit`: who did what to desks, keys and members. */
import { Command, Option } from "commander";
import { auditActor, describeAudit } from "../domain/audit.ts";
import { SqliteAudit } from "../store/sqlite/audit.ts";
import { dataOption, jsonOption, readPositive, withDatabase } from "./options.ts";
import { formatTime, printJson, printNote, printTable } from "./print.ts";

const LIMIT_DEFAULT = 50;

export function auditCommand(): Command {
  return new Command("audit")
    .description("list who did what to desks, keys and members, newest first")
    .option("--desk <name>", "only what was done to this desk")
    .addOption(
      new Option("--limit <n>", "so many entries").argParser(readPositive).default(LIMIT_DEFAULT),
    )
    .addOption(jsonOption())
    .addOption(dataOption())
    .addHelpText(
      "after",
      `
"admin" is somebody who used this command line.

Examples:
  $ signalbox audit
  $ signalbox audit --desk alpha --limit 1000 --json | jq '.[] | select(.action == "key.revoked")'`,
    )
    .action((options: { desk?: string; limit: number; json?: true; data: string }) => {
      const { desk = null, limit } = options;
      const records = withDatabase(options.data, (db) => new SqliteAudit(db).list({ desk, limit }));
      if (options.json) printJson(records);
      else if (records.length === 0) printNote("Nothing has been done yet.");
      else {
        const rows = records.map((record) => [
          formatTime(record.at),
          record.desk,
          auditActor(record),
          record.client ?? "-",
          describeAudit(record),
        ]);
        printTable(["TIME", "DESK", "WHO", "FROM", "WHAT"], rows);
      }
    });
}

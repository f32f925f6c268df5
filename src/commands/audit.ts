/** `signalbox audit`: who did what to desks, keys and members. */
import { type Command, Option } from "commander";
import { auditActor, describeAudit } from "../domain/audit.ts";
import { withStorage } from "../store/open.ts";
import { type DataOptions, defineCommand } from "./define.ts";
import { readPositive } from "./options.ts";
import { printList, timeColumn } from "./print.ts";

const LIMIT_DEFAULT = 50;

interface AuditOptions extends DataOptions {
  readonly desk?: string | null;
  readonly limit: number;
}

export function auditCommand(): Command {
  return defineCommand({
    name: "audit",
    description: "list who did what to desks, keys and members, newest first",
    options: [
      new Option("--desk <name>", "list only changes to this desk"),
      new Option("--limit <n>", "maximum number of entries")
        .argParser(readPositive)
        .default(LIMIT_DEFAULT),
    ],
    adds: "data and json",
    notes: `
"admin alice" is the user alice of the operating system, who used this command line; after sudo,
"admin root (sudo: alice)".`,
    examples: [
      "signalbox audit",
      `signalbox audit --desk alpha --limit 1000 --json | jq '.[] | select(.action == "key.revoked")'`,
    ],
    run: async ({ desk = null, limit, json, data }: AuditOptions) => {
      const records = await withStorage(data, ({ audit }) => audit.list({ desk, limit }));
      printList(records, {
        json,
        none: "Nothing has been done yet.",
        columns: {
          TIME: timeColumn(({ at }) => at),
          DESK: (record) => record.desk ?? "all",
          WHO: auditActor,
          FROM: { cell: ({ client }) => client ?? "-", leaveOut: 1 },
          WHAT: describeAudit,
        },
      });
    },
  });
}

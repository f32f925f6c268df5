/** `signalbox audit`: who did what to desks, keys and members. */
import { auditActor, describeAudit } from "../domain/audit/audit.ts";
import { auditLines } from "../domain/audit/audit-lines.ts";
import { withStorage } from "../store/open.ts";
import { type DataOptions, defineCommand } from "../cli/define.ts";
import { deskOption, limitOption } from "../cli/options.ts";
import { printJson, printList, timeColumn } from "../cli/print.ts";

interface AuditOptions extends DataOptions {
  readonly desk?: string | null;
  readonly limit: number;
}

export const auditCommand = defineCommand({
  name: "audit",
  description: "list who did what to desks, keys and members, newest first",
  options: [
    deskOption("list only changes to this desk"),
    limitOption("maximum number of entries", 50),
  ],
  adds: "data and json",
  notes: `
"admin alice" is the user alice of the operating system, who used this command line; after sudo,
"admin root (sudo: alice)". Who used sudo is who logged in to Linux; without a login, SUDO_USER counts for
root alone. Equal failed sign-ins in a row are one line, except with --json.`,
  examples: [
    "signalbox audit",
    `signalbox audit --desk alpha --limit 1000 --json | jq '.[] | select(.action == "key.revoked")'`,
  ],
  run: async ({ desk = null, limit, json, data }: AuditOptions) => {
    const records = await withStorage(data, ({ audit }) => audit.list({ desk, limit }));
    if (json) return printJson(records);
    printList(auditLines(records), {
      json,
      none: "Nothing has been done yet.",
      columns: {
        TIME: timeColumn(({ record }) => record.at),
        DESK: ({ record }) => record.desk ?? "all",
        WHO: ({ record }) => auditActor(record),
        FROM: { cell: ({ record }) => record.client ?? "-", leaveOut: 1 },
        WHAT: ({ record, count }) =>
          describeAudit(record) + (count === 1 ? "" : ` (${count} times)`),
      },
    });
  },
});

/** `signalbox status`: a server and its data at a glance, and what needs attention. */
import { existsSync } from "node:fs";
import ms from "ms";
import type { DrillStatus } from "../backups/drill.ts";
import { describeKeep } from "../backups/keep.ts";
import { describeSending } from "../checks/backups.ts";
import { freeBytes } from "../checks/disk.ts";
import { runChecks } from "../checks/table.ts";
import { showHidden } from "../lib/text/hidden.ts";
import { formatBytes } from "../lib/text/words.ts";
import type { ServerStatus } from "../ops/server.ts";
import { VERSION } from "../lib/version.ts";
import { isLocked } from "../store/open.ts";
import { placeName } from "../lib/place.ts";
import { contextOf } from "./context.ts";
import { type DataOptions, defineCommand } from "../cli/define.ts";
import { count, formatTime, plural, printData, printJson, printTable } from "../cli/print.ts";

type Status = Awaited<ReturnType<typeof readStatus>>;

export const statusCommand = defineCommand({
  name: "status",
  description: "show the server, its desks, and what needs attention",
  adds: "data and json",
  notes: `
Shows the server's version and addresses, each desk's latest signal, the rate, the last backup, the disk, the
certificate, who sends unknown keys (docs/operations.md says how to find the key), then what needs attention
(such as a revoked key that still sends), each with what to type. Works without a running server, too. Exits with
code 0 whatever needs attention, and with 1 if the database cannot be read: use healthcheck for a supervisor.`,
  examples: ["signalbox status", "signalbox status --json | jq '.attention'"],
  run: async ({ json, ...place }: DataOptions) => {
    const status = await readStatus(place);
    if (json) printJson(status);
    else printStatus(status);
  },
});

/** As `--json` prints it. `rate` is of all desks; `desks` are those that are not archived. */
async function readStatus({ data, folder }: DataOptions) {
  const context = await contextOf(folder, data);
  const { dataDir, server } = context;
  const { desks, rate } = await context.stored();
  // `next` is null if the problem says it.
  const attention: { readonly problem: string; readonly next: string | null }[] = [];
  for await (const { severity, sentence, next } of runChecks("status", context)) {
    if (severity !== "ok") attention.push({ problem: sentence, next });
  }
  // Without a server, another database needs no folder yet.
  const disk_free_bytes =
    context.files === null && !existsSync(dataDir) ? null : await freeBytes(dataDir);
  return {
    version: VERSION,
    data: placeName(data),
    server,
    desks,
    rate,
    disk_free_bytes,
    attention,
  };
}

function printStatus(status: Status): void {
  const { server, desks, rate, attention } = status;
  const facts: [name: string, fact: string][] = [
    ["version", VERSION],
    ["server", describeServer(status)],
    ["data", status.data],
  ];
  if (server !== null) {
    facts.push(["signals", server.public_url ?? "starting"], ["console", describeConsole(server)]);
    if (server.feed_url !== null) facts.push(["feed", server.feed_url]);
    if (server.ops_listen !== null) facts.push(["health", `http://${server.ops_listen}`]);
    facts.push(["backup", describeBackup(server)]);
    if (server.backups?.drill) facts.push(["drill", describeDrill(server.backups.drill)]);
    facts.push(["certificate", describeCertificate(server)]);
  }
  if (status.disk_free_bytes !== null) {
    facts.push(["disk", `${formatBytes(status.disk_free_bytes)} free`]);
  }
  facts.push([
    "rate",
    `${plural(rate.last_minute, "signal")} in the last minute, ${count(rate.last_hour)} in the last hour`,
  ]);
  for (const [name, fact] of facts) printData(`${name.padEnd(13)}${showHidden(fact)}`);
  if (desks.length > 0) {
    printData("");
    printTable(desks, {
      DESK: { cell: ({ name }) => name, whole: true },
      "ACTIVE KEYS": ({ active_keys }) => String(active_keys),
      "LATEST SIGNAL": ({ latest_signal }) => formatTime(latest_signal?.received_at ?? null),
      SYMBOL: {
        cell: ({ latest_signal }) =>
          latest_signal === null ? "-" : (latest_signal.symbol ?? "damaged"),
        leaveOut: 1,
      },
    });
  }
  printUnknownKeys(server);
  printData("");
  if (attention.length === 0) printData("Nothing needs attention.");
  for (const { problem, next } of attention) {
    printData(`! ${showHidden(problem)}`);
    if (next !== null) printData(`  ${showHidden(next)}`);
  }
}

/** Of those with the most requests. */
const UNKNOWN_KEYS_SHOWN = 5;

function printUnknownKeys(server: ServerStatus | null): void {
  const { keys = [], others = 0 } = server?.unknown_keys ?? {};
  if (keys.length === 0) return;
  const shown = keys.slice(0, UNKNOWN_KEYS_SHOWN);
  const more = keys.slice(shown.length).reduce((sum, key) => sum + key.count, others);
  printData("");
  printTable(shown, {
    "UNKNOWN KEY FROM": ({ address }) => address || "-",
    "HASH OF ITS START": ({ hash }) => hash ?? "none",
    REQUESTS: { cell: (key) => count(key.count), number: true },
    LATEST: ({ at }) => formatTime(at),
  });
  if (more > 0) printData(`${plural(more, "more request")} had an unknown key: see --json.`);
}

function describeServer({ server, data }: Status): string {
  if (server !== null) {
    const { started_at, database, node } = server;
    const on = database == null ? "" : ` on ${node}`;
    return `running since ${formatTime(started_at)}${on}`;
  }
  return isLocked(data) ? "no answer" : "not running";
}

function describeConsole({ console_url: url, listen }: ServerStatus): string {
  if (url === null) return "off";
  return listen === null ? "starting" : url;
}

function describeBackup({ backups, database }: ServerStatus): string {
  if (backups === null && database != null) return "by PostgreSQL's own tools: docs/scale.md";
  if (backups === null) return "none by this server: serve --backup-dir DIR makes them";
  const { dir, every_ms, newest, keep } = backups;
  if (newest === null) return `none yet, every ${ms(every_ms)} to ${dir}`;
  const sending = describeSending(backups);
  const and = sending === null ? "" : `, ${sending}`;
  return `${formatTime(newest.at)}, ${newest.file}${and}; ${describeKeep(keep)}`;
}

function describeDrill({ every_ms, last, passed_at }: DrillStatus): string {
  if (last === null) return `none yet, every ${ms(every_ms)}`;
  const result = last.failure === null ? "passed" : last.is_skipped ? "skipped" : "failed";
  const before = last.failure === null ? "" : `; the last that passed: ${formatTime(passed_at)}`;
  return `${formatTime(last.at)}, ${last.file}, ${result}${before}`;
}

function describeCertificate({
  certificate_expires_at: expiresAt,
  public_url: publicUrl,
  acme,
}: ServerStatus): string {
  const renewal = acme === null ? "" : `, next order at ${formatTime(acme.next_attempt_at)}`;
  if (expiresAt !== null) return `expires at ${formatTime(expiresAt)}${renewal}`;
  if (acme !== null) return `none yet from ${acme.directory}${renewal}`;
  return publicUrl?.startsWith("https:") === true
    ? "not here: the proxy has it"
    : "none needed: this machine only";
}

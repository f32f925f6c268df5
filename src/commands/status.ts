/** `signalbox status`: a server and its data at a glance, and what needs attention. */
import { resolve } from "node:path";
import type { Command } from "commander";
import ms from "ms";
import { type ApiKey, EXPIRING_SOON_MS, keyState } from "../domain/key.ts";
import { escapeControls } from "../domain/shell.ts";
import type { Storage } from "../domain/storage.ts";
import { askChecks, askStatus } from "../ops/client.ts";
import type { ServerStatus } from "../ops/server.ts";
import { withStorage } from "../store/open.ts";
import { VERSION } from "../version.ts";
import {
  type Attention,
  attentionToBackups,
  attentionToCertificate,
  attentionToRefusal,
  attentionToDesks,
  attentionToDisk,
  attentionToEnded,
  attentionToExpiring,
  attentionToServer,
  describeSending,
  type DeskStatus,
  type EndedKey,
  formatBytes,
} from "./attention.ts";
import { type DataOptions, defineCommand } from "./define.ts";
import { freeBytes } from "./disk.ts";
import { count, formatTime, plural, printData, printJson, printTable } from "./print.ts";
import { HOUR_MS, MINUTE_MS } from "../domain/time.ts";

/** Keys of a desk that got 401, those included that are active again since their desk was brought back. */
const REFUSED_KEYS_MAX = 1_000;

/** The hour under way, and the 23 before it. */
const STILL_IN_USE_MS = 23 * HOUR_MS;

interface Status {
  readonly version: string;
  readonly data: string;
  /** Null: not running. */
  readonly server: ServerStatus | null;
  /** Those that are not archived. */
  readonly desks: readonly DeskStatus[];
  /** Signals stored, of all desks. */
  readonly rate: { readonly last_minute: number; readonly last_hour: number };
  readonly disk_free_bytes: number;
  readonly attention: readonly Attention[];
}

export function statusCommand(): Command {
  return defineCommand({
    name: "status",
    description: "show the server, its desks, and what needs attention",
    adds: "data and json",
    notes: `
Works without a running server, too, and exits with code 0 in any case: use healthcheck for a supervisor.`,
    examples: ["signalbox status", "signalbox status --json | jq '.attention'"],
    run: async ({ json, data }: DataOptions) => {
      const status = await readStatus(data);
      if (json) printJson(status);
      else printStatus(status);
    },
  });
}

async function readStatus(data: string): Promise<Status> {
  const dataDir = resolve(data);
  const now = Date.now();
  const server = await askStatus(dataDir);
  const stored = await withStorage(data, (storage) => readStored(storage, server, now));
  const checks = server === null ? null : await askChecks(dataDir);
  const { archived, expiring, stillInUse, ...shown } = stored;
  const status = {
    version: VERSION,
    data: dataDir,
    server,
    ...shown,
    disk_free_bytes: freeBytes(dataDir),
  };
  const attention = [
    ...attentionToServer(server, checks, data),
    ...attentionToDisk(status.disk_free_bytes),
    ...attentionToCertificate(server?.certificate_expires_at ?? null, server?.acme ?? null, now),
    ...attentionToRefusal(server),
    ...attentionToBackups(server, now),
    ...attentionToDesks(status.desks, archived, data),
    ...attentionToExpiring(expiring, data),
    ...attentionToEnded(stillInUse, data),
  ];
  return { ...status, attention };
}

/** A few look-ups in indexes, however many signals there are. */
async function readStored(
  { registry, signals, activity }: Storage,
  server: ServerStatus | null,
  now: number,
) {
  const since = now - STILL_IN_USE_MS;
  const desks: DeskStatus[] = [];
  let archived = 0;
  const expiring: ApiKey[] = [];
  const refused: string[] = [];
  for (const desk of await registry.listOverviews(0)) {
    const { id: deskId, name, archived_at, active_keys, read_keys, latest_signal } = desk;
    refused.push(...(await activity.keysStillInUse(deskId, since, REFUSED_KEYS_MAX)));
    if (archived_at !== null) {
      archived += 1;
      continue;
    }
    desks.push({ name, active_keys, read_keys, latest_signal });
    expiring.push(...(await registry.expiringKeys(name, now + EXPIRING_SOON_MS)));
  }
  expiring.push(...(await registry.expiringKeys(null, now + EXPIRING_SOON_MS)));
  const readers = (server?.refused_readers ?? []).filter(({ at }) => at >= since);
  refused.push(...readers.map(({ key_id }) => key_id));
  const stillInUse: EndedKey[] = [];
  for (const id of refused) {
    const key = await registry.findKey(id);
    const state = key === null ? "active" : keyState(key, now);
    if (key !== null && state !== "active") stillInUse.push({ ...key, state });
  }
  const rate = {
    last_minute: await signals.countSince(now - MINUTE_MS),
    last_hour: await signals.countSince(now - HOUR_MS),
  };
  return { desks, archived, rate, expiring, stillInUse };
}

function printStatus(status: Status): void {
  const { server, desks, rate, attention } = status;
  const facts: [name: string, fact: string][] = [
    ["version", VERSION],
    ["server", server === null ? "not running" : `running since ${formatTime(server.started_at)}`],
    ["data", status.data],
  ];
  if (server !== null) {
    facts.push(["signals", server.public_url ?? "starting"], ["console", describeConsole(server)]);
    if (server.feed_url !== null) facts.push(["feed", server.feed_url]);
    if (server.ops_listen !== null) facts.push(["health", `http://${server.ops_listen}`]);
    facts.push(["backup", describeBackup(server)]);
    facts.push(["certificate", describeCertificate(server)]);
  }
  facts.push(["disk", `${formatBytes(status.disk_free_bytes)} free`]);
  facts.push([
    "rate",
    `${plural(rate.last_minute, "signal")} in the last minute, ${count(rate.last_hour)} in the last hour`,
  ]);
  for (const [name, fact] of facts) printData(`${name.padEnd(13)}${escapeControls(fact)}`);
  if (desks.length > 0) {
    printData("");
    printTable(desks, {
      DESK: { cell: ({ name }) => name, whole: true },
      "ACTIVE KEYS": ({ active_keys }) => String(active_keys),
      "LATEST SIGNAL": ({ latest_signal }) => formatTime(latest_signal?.received_at ?? null),
      SYMBOL: { cell: ({ latest_signal }) => latest_signal?.symbol ?? "-", leaveOut: 1 },
    });
  }
  printData("");
  if (attention.length === 0) printData("Nothing needs attention.");
  for (const { problem, next } of attention) {
    printData(`! ${escapeControls(problem)}\n  ${escapeControls(next)}`);
  }
}

function describeConsole({ console_url: url, listen }: ServerStatus): string {
  if (url === null) return "off";
  return listen === null ? "starting" : url;
}

function describeBackup({ backups }: ServerStatus): string {
  if (backups === null) return "none by this server: serve --backup-dir DIR makes them";
  const { dir, every_ms, newest } = backups;
  if (newest === null) return `none yet, every ${ms(every_ms)} to ${dir}`;
  const sending = describeSending(backups);
  return `${formatTime(newest.at)}, ${newest.file}${sending === null ? "" : `, ${sending}`}`;
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

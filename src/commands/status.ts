/** `signalbox status`: a server and its data at a glance, and what needs attention. */
import { statfsSync } from "node:fs";
import { resolve } from "node:path";
import type { Command } from "commander";
import ms from "ms";
import type { DeskOverview } from "../domain/desk.ts";
import { type ApiKey, EXPIRING_SOON_MS } from "../domain/key.ts";
import { escapeControls, shellQuoted } from "../domain/shell.ts";
import type { Storage } from "../domain/storage.ts";
import { askServer, askStatus } from "../ops/client.ts";
import { type Checks, DISK_FREE_BYTES_MIN } from "../ops/health.ts";
import type { ServerStatus } from "../ops/server.ts";
import { withStorage } from "../store/open.ts";
import { VERSION } from "../version.ts";
import { type DataOptions, defineCommand } from "./define.ts";
import { toType } from "./hint.ts";
import { count, formatTime, plural, printData, printJson, printTable } from "./print.ts";

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;

/** Time to renew it. */
const CERTIFICATE_SOON_MS = 14 * DAY_MS;
/** Keys that are named one by one. */
const KEYS_NAMED_MAX = 5;
/** Eight times what signals need. */
const DISK_LOW_BYTES = 8 * DISK_FREE_BYTES_MIN;
/** A backup by hand would not be one that the server knows. */
const BACKUP_ADVICE =
  "fix the cause (see the server's log); the server tries again within a minute";
/** A backup may take so long, as a multiple of the interval. */
const BACKUP_LATE = 2;

type DeskStatus = Pick<DeskOverview, "name" | "active_keys" | "latest_signal">;

interface Attention {
  readonly problem: string;
  /** What to do, or the command to type. */
  readonly next: string;
}

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
  const stored = await withStorage(data, (storage) => readStored(storage, now));
  const server = await askStatus(dataDir);
  const checks = server === null ? null : await askChecks(dataDir);
  const { bavail, bsize } = statfsSync(dataDir);
  const { expiring, ...shown } = stored;
  const status = {
    version: VERSION,
    data: dataDir,
    server,
    ...shown,
    disk_free_bytes: bavail * bsize,
  };
  const attention = [
    ...attentionToServer(status, checks, data),
    ...attentionToBackups(server, now),
    ...attentionToDesks(status.desks, data),
    ...attentionToKeys(expiring, data),
  ];
  return { ...status, attention };
}

/** A few look-ups in indexes, however many signals there are. */
async function readStored({ registry, signals }: Storage, now: number) {
  const desks: DeskStatus[] = [];
  const expiring: ApiKey[] = [];
  for (const { name, archived_at, active_keys, latest_signal } of await registry.listOverviews()) {
    if (archived_at !== null) continue;
    desks.push({ name, active_keys, latest_signal });
    expiring.push(...(await registry.expiringKeys(name, now + EXPIRING_SOON_MS)));
  }
  const rate = {
    last_minute: await signals.countSince(now - MINUTE_MS),
    last_hour: await signals.countSince(now - HOUR_MS),
  };
  return { desks, rate, expiring };
}

async function askChecks(dataDir: string): Promise<Checks | null> {
  try {
    return ((await (await askServer(dataDir, "/readyz")).json()) as { checks: Checks }).checks;
  } catch {
    return null;
  }
}

function attentionToServer(
  { server, disk_free_bytes: free }: Omit<Status, "attention">,
  checks: Checks | null,
  data: string,
): Attention[] {
  const found: Attention[] = [];
  if (server === null) {
    found.push({ problem: "The server is not running.", next: toType("serve", data) });
  } else if (server.version !== VERSION) {
    found.push({
      problem: `The server runs version ${server.version}, and this is ${VERSION}.`,
      next: "restart the server",
    });
  }
  if (checks !== null && !checks.writer.ok) {
    found.push({
      problem: `Signals are not stored: ${checks.writer.detail}.`,
      next: "read the server's log, which says what to do",
    });
  }
  if (free < DISK_LOW_BYTES) {
    found.push({
      problem: `The disk has ${formatBytes(free)} left; below ${formatBytes(DISK_FREE_BYTES_MIN)} signals may be refused.`,
      next: "free some space",
    });
  }
  const expiresAt = server?.certificate_expires_at ?? null;
  if (expiresAt !== null && expiresAt < Date.now() + CERTIFICATE_SOON_MS) {
    found.push({
      problem: `The certificate ${expiresAt < Date.now() ? "expired" : "expires"} at ${formatTime(expiresAt)}.`,
      next: "renew it and replace its files; the server takes them without a restart",
    });
  }
  return found;
}

function attentionToBackups(server: ServerStatus | null, now: number): Attention[] {
  if (server === null || server.backups === null) return [];
  const { dir, every_ms, failure, newest } = server.backups;
  if (failure !== null) {
    return [
      {
        problem: `The last backup failed at ${formatTime(failure.at)}: ${failure.reason}`,
        next: BACKUP_ADVICE,
      },
    ];
  }
  const due = (newest?.at ?? server.started_at) + BACKUP_LATE * every_ms;
  if (due > now) return [];
  return [
    {
      problem: `There is no backup of the last ${ms(BACKUP_LATE * every_ms)} in ${dir}.`,
      next: BACKUP_ADVICE,
    },
  ];
}

function attentionToDesks(desks: readonly DeskStatus[], data: string): Attention[] {
  if (desks.length === 0) {
    return [{ problem: "There is no desk.", next: toType("desk create NAME", data) }];
  }
  return desks
    .filter(({ active_keys }) => active_keys === 0)
    .map(({ name }) => ({
      problem: `Desk ${name} has no active key.`,
      next: toType(`key mint --desk ${shellQuoted(name)}`, data),
    }));
}

function attentionToKeys(expiring: readonly ApiKey[], data: string): Attention[] {
  const found = expiring.slice(0, KEYS_NAMED_MAX).map(({ id, desk, label, expires_at }) => ({
    problem: `Key ${label ?? id} of desk ${desk} expires at ${formatTime(expires_at)}.`,
    next: toType(`key rotate ${id}`, data),
  }));
  const more = expiring.length - found.length;
  if (more === 0) return found;
  return [
    ...found,
    { problem: `${more} more keys expire within 7 days.`, next: toType("key list", data) },
  ];
}

function printStatus(status: Status): void {
  const { server, desks, rate, attention } = status;
  const facts: [name: string, fact: string][] = [
    ["version", VERSION],
    ["server", server === null ? "not running" : `running since ${formatTime(server.started_at)}`],
    ["data", status.data],
  ];
  if (server !== null) {
    facts.push(
      ["signals", server.public_url ?? "starting"],
      ["console", server.console_url ?? "off"],
    );
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

function describeBackup({ backups }: ServerStatus): string {
  if (backups === null) return "none by this server: serve --backup-dir DIR makes them";
  const { dir, every_ms, newest } = backups;
  return newest === null
    ? `none yet, every ${ms(every_ms)} to ${dir}`
    : `${formatTime(newest.at)}, ${newest.file}`;
}

function describeCertificate({
  certificate_expires_at: expiresAt,
  public_url: publicUrl,
}: ServerStatus): string {
  if (expiresAt !== null) return `expires at ${formatTime(expiresAt)}`;
  return publicUrl?.startsWith("https:") === true
    ? "not here: the proxy has it"
    : "none needed: this machine only";
}

function formatBytes(bytes: number): string {
  const mib = Math.floor(bytes / 1024 / 1024);
  return mib < 10_240 ? `${mib} MiB` : `${Math.floor(mib / 1024)} GiB`;
}

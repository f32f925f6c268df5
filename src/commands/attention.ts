/** What needs attention, for `signalbox status`. */
import ms from "ms";
import type { DeskOverview } from "../domain/desk.ts";
import type { ApiKey, KeyState } from "../domain/key.ts";
import { shellQuoted } from "../domain/shell.ts";
import type { AcmeStatus } from "../net/acme/status.ts";
import type { BackupStatus } from "../ops/backups.ts";
import { type Checks, DISK_FREE_BYTES_MIN } from "../ops/health.ts";
import type { ServerStatus } from "../ops/server.ts";
import { VERSION } from "../version.ts";
import { toType } from "./hint.ts";
import { formatTime } from "./print.ts";
import { DAY_MS } from "../domain/time.ts";

/** Time to renew it. */
const CERTIFICATE_SOON_MS = 14 * DAY_MS;
/** Keys that are named one by one. */
const KEYS_NAMED_MAX = 5;
/** Eight times what signals need. */
const DISK_LOW_BYTES = 8 * DISK_FREE_BYTES_MIN;
/** A backup by hand would not be one that the server knows. */
const BACKUP_ADVICE = "fix the cause; the server tries again within a minute";
const LATE_ADVICE = "read the server's log, which says why";
const COMMAND_ADVICE =
  "run it yourself as the server's user, to see all that it says; if it works there, the service's sandbox forbids it: add ReadWritePaths= with systemctl edit signalbox";
const TIMEOUT_ADVICE = "make it faster, or raise --backup-every";
/** A backup may take so long, as a multiple of the interval. */
const BACKUP_LATE = 2;

export type DeskStatus = Pick<DeskOverview, "name" | "active_keys" | "read_keys" | "latest_signal">;

export interface EndedKey extends ApiKey {
  readonly state: Exclude<KeyState, "active">;
}

export type Renewing = Pick<
  AcmeStatus,
  "missing" | "failure" | "is_listening" | "next_attempt_at" | "held_until"
>;

export interface Attention {
  readonly problem: string;
  /** What to do, or the command to type. */
  readonly next: string;
}

function needs(problem: string, next: string): Attention[] {
  return [{ problem, next }];
}

export function attentionToServer(
  server: ServerStatus | null,
  checks: Checks | null,
  data: string,
): Attention[] {
  if (server === null) return needs("The server is not running.", toType("serve", data));
  const found: Attention[] = [];
  if (server.version !== VERSION) {
    const problem = `The server runs version ${server.version}, and this is ${VERSION}.`;
    found.push({ problem, next: "restart the server" });
  }
  if (checks !== null && !checks.writer.ok) {
    const problem = `Signals are not stored: ${checks.writer.detail}.`;
    found.push({ problem, next: "read the server's log, which says what to do" });
  }
  return found;
}

export function attentionToDisk(freeBytes: number): Attention[] {
  if (freeBytes >= DISK_LOW_BYTES) return [];
  return needs(
    `The disk has ${formatBytes(freeBytes)} left; below ${formatBytes(DISK_FREE_BYTES_MIN)} signals may be refused.`,
    "free some space",
  );
}

export function attentionToCertificate(
  expiresAt: number | null,
  acme: Renewing | null,
  now: number,
): Attention[] {
  if (acme !== null) return attentionToAcme(expiresAt, acme, now);
  if (expiresAt === null || expiresAt >= now + CERTIFICATE_SOON_MS) return [];
  return needs(
    `The certificate ${expiresAt < now ? "expired" : "expires"} at ${formatTime(expiresAt)}.`,
    "renew it and replace its files; the server takes them without a restart",
  );
}

export function attentionToRefusal(server: ServerStatus | null): Attention[] {
  const reason = server?.certificate_refusal ?? null;
  if (reason === null) return [];
  return needs(
    `The new certificate was rejected, and a restart would fail: ${reason}`,
    "correct the files; the server takes them without a restart",
  );
}

/** While orders succeed, the certificate is renewed in time, however short its lifetime is. */
function attentionToAcme(expiresAt: number | null, acme: Renewing, now: number): Attention[] {
  const {
    missing,
    failure,
    is_listening: isListening,
    next_attempt_at: nextAt,
    held_until: heldUntil,
  } = acme;
  const isExpired = expiresAt !== null && expiresAt < now;
  const isWrong = isExpired || missing.length > 0;
  const problem = isExpired
    ? `The certificate expired at ${formatTime(expiresAt)}, and clients cannot connect`
    : `The certificate lacks ${missing.join(", ")}`;
  if (failure === null) {
    return isWrong ? needs(`${problem}.`, "keep the server running: it orders another one") : [];
  }
  const other = expiresAt === null ? "There is no certificate" : "The certificate is not renewed";
  const retry =
    heldUntil === null
      ? `, then run: systemctl reload signalbox; otherwise the server tries again at ${formatTime(nextAt)}`
      : `; the directory asked to wait, so the server tries again at ${formatTime(nextAt)}`;
  const what =
    isListening === false
      ? `since ${formatTime(failure.at)} this server cannot listen for challenges`
      : `the order of ${formatTime(failure.at)} failed`;
  return needs(`${isWrong ? problem : other}: ${what}: ${failure.reason}`, `fix the cause${retry}`);
}

export function attentionToBackups(
  server: Pick<ServerStatus, "backups" | "started_at"> | null,
  now: number,
): Attention[] {
  if (server === null || server.backups === null) return [];
  const { dir, every_ms, failure, newest, sending, stuck_since: stuckSince } = server.backups;
  if (stuckSince != null) {
    return needs(
      `A backup has been running since ${formatTime(stuckSince)}: the disk of ${dir} does not answer, or is too slow.`,
      "look at that disk; if it hangs, unmount it, or mount it again",
    );
  }
  if (failure !== null) {
    const problem = `The last backup failed at ${formatTime(failure.at)}: ${failure.reason}`;
    return needs(problem, BACKUP_ADVICE);
  }
  if ((newest?.at ?? server.started_at) + BACKUP_LATE * every_ms <= now) {
    const problem = `There is no backup of the last ${ms(BACKUP_LATE * every_ms)} in ${dir}.`;
    return needs(problem, LATE_ADVICE);
  }
  if (sending == null || sending.failure === null) return [];
  const { at, reason, timed_out } = sending.failure;
  const problem = `The backup command failed at ${formatTime(at)}: ${reason}`;
  return needs(problem, timed_out ? TIMEOUT_ADVICE : COMMAND_ADVICE);
}

/** Whether the command has sent the newest backup away; null without a command, or before its first end. */
export function describeSending({ newest, sending }: BackupStatus): string | null {
  if (newest === null || sending == null) return null;
  if (sending.sent === null && sending.failure === null) return null;
  return sending.sent?.file === newest.file ? "sent away" : "not sent away yet";
}

/** `desks`: those that are not archived. */
export function attentionToDesks(
  desks: readonly DeskStatus[],
  archived: number,
  data: string,
): Attention[] {
  if (desks.length === 0 && archived > 0) {
    return needs("Every desk is archived.", toType("desk archive NAME --undo", data));
  }
  if (desks.length === 0) return needs("There is no desk.", toType("desk create NAME", data));
  return desks
    .filter(({ active_keys, read_keys }) => active_keys === read_keys)
    .map(({ name }) => ({
      problem: `Desk ${name} has no active send key.`,
      next: toType(`key mint --desk ${shellQuoted(name)}`, data),
    }));
}

export function attentionToExpiring(expiring: readonly ApiKey[], data: string): Attention[] {
  const found = expiring.map((key) => ({
    problem: `${nameOf(key)} expires at ${formatTime(key.expires_at)}.`,
    next: toType(`key rotate ${key.id}`, data),
  }));
  return firstOf(found, "key expires within 7 days", "keys expire within 7 days", data);
}

export function attentionToEnded(stillInUse: readonly EndedKey[], data: string): Attention[] {
  const found = stillInUse.map((key) => {
    const ended = key.state === "archived" ? ", which is archived," : ` is ${key.state}, and`;
    return {
      problem: `${nameOf(key)}${ended} got 401 in the last 24 hours: something still uses it.`,
      next: `stop what uses it${alternativeTo(key, data)}`,
    };
  });
  const many = "keys have ended and are still in use";
  return firstOf(found, "key has ended and is still in use", many, data);
}

function nameOf({ id, label, desk }: ApiKey): string {
  return `Key ${label ?? id} of ${desk === null ? "all desks" : `desk ${desk}`}`;
}

/** An archived desk gets no new key, and bringing it back revives no key that has ended. */
function alternativeTo({ state, scope, desk, desk_archived_at }: EndedKey, data: string): string {
  const name = desk === null ? "" : ` ${shellQuoted(desk)}`;
  if (state === "archived") {
    return `, or bring the desk back: ${toType(`desk archive${name} --undo`, data)}`;
  }
  if (desk_archived_at !== null) return "";
  const mint = `key mint${scope === "read" ? " --read" : ""}${name && ` --desk${name}`}`;
  return `, or give it a new key: ${toType(mint, data)}`;
}

function firstOf(
  found: readonly Attention[],
  one: string,
  many: string,
  data: string,
): Attention[] {
  const named = found.slice(0, KEYS_NAMED_MAX);
  const more = found.length - named.length;
  if (more === 0) return named;
  return [...named, ...needs(`${more} more ${more === 1 ? one : many}.`, toType("key list", data))];
}

export function formatBytes(bytes: number): string {
  const mib = Math.floor(bytes / 1024 / 1024);
  return mib < 10_240 ? `${mib} MiB` : `${Math.floor(mib / 1024)} GiB`;
}

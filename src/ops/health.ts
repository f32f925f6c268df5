/** The checks of `/readyz`: whether this server can store signals. */
import { statfs } from "node:fs/promises";
import { messageOf } from "../domain/errors.ts";
import { DAY_MS } from "../domain/time.ts";
import type { AcmeStatus } from "../net/acme/status.ts";
import type { Certificate } from "../net/tls.ts";

export interface Check {
  readonly ok: boolean;
  readonly detail: string;
}

export type Checks = Record<"writer" | "disk" | "certificate", Check>;

export interface HealthSources {
  readonly dataDir: string;
  /** Why signals are not stored, or null. */
  readonly writerProblem: () => string | null;
  /** The one in use; null: there is none. */
  readonly certificate: () => Pick<Certificate, "startsAt" | "expiresAt"> | null;
  /** Null without `--acme-domain`. */
  readonly acme: () => AcmeStatus | null;
  readonly now: () => number;
}

/** With less, the log and its checkpoint may not fit. */
export const DISK_FREE_BYTES_MIN = 128 * 1024 * 1024;

export async function readiness(sources: HealthSources): Promise<Checks> {
  return {
    writer: checkWriter(sources),
    disk: await checkDisk(sources),
    certificate: checkCertificate(sources),
  };
}

function checkWriter({ writerProblem }: HealthSources): Check {
  const problem = writerProblem();
  return { ok: problem === null, detail: problem ?? "storing" };
}

async function checkDisk({ dataDir }: HealthSources): Promise<Check> {
  try {
    const { bavail, bsize } = await statfs(dataDir);
    const freeBytes = bavail * bsize;
    const detail = `${Math.floor(freeBytes / 1024 / 1024)} MiB free, ${DISK_FREE_BYTES_MIN / 1024 / 1024} MiB needed`;
    return { ok: freeBytes >= DISK_FREE_BYTES_MIN, detail };
  } catch (error) {
    return { ok: false, detail: messageOf(error) };
  }
}

/** A certificate that could not be renewed is good until it expires. */
function checkCertificate({ certificate, acme, now }: HealthSources): Check {
  const expiresAt = certificate()?.expiresAt ?? null;
  const renewal = acme();
  const state = renewal === null ? "" : describeRenewal(renewal);
  if (expiresAt === null) {
    return renewal === null
      ? { ok: true, detail: "none: a proxy terminates HTTPS, or clients are local" }
      : { ok: false, detail: `none yet from ${renewal.directory}${state}` };
  }
  const days = Math.floor((expiresAt - now()) / DAY_MS);
  const date = new Date(expiresAt).toISOString();
  if (days < 0) return { ok: false, detail: `expired at ${date}${state}` };
  return { ok: true, detail: `expires in ${days} days, at ${date}${state}` };
}

function describeRenewal({
  missing,
  failure,
  is_listening: isListening,
  next_attempt_at: nextAt,
}: AcmeStatus): string {
  const lacks = missing.length === 0 ? "" : `; lacks ${missing.join(", ")}`;
  if (failure === null) return lacks;
  const next = nextAt === null ? "" : `; next attempt at ${new Date(nextAt).toISOString()}`;
  const at = new Date(failure.at).toISOString();
  const what =
    isListening === false
      ? `cannot listen for challenges since ${at}`
      : `the last order failed at ${at}`;
  return `${lacks}; ${what}: ${failure.reason}${next}`;
}

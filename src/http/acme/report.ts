/** How the certificate of `--acme-domain` fares, and what the log says about it. */
import type { Logger } from "pino";
import { messageOf } from "../../lib/errors.ts";
import { readAccountKey } from "./files.ts";
import type { AcmeState } from "./state.ts";

/** For the log, `/status` and metrics. Times are epoch milliseconds. */
export interface AcmeStatus {
  readonly domains: readonly string[];
  /** Those that the certificate in use is not for. */
  readonly missing: readonly string[];
  readonly directory: string;
  /** Where challenges are answered, as bound. */
  readonly http_listen: string;
  /** When the next order is due; null: not decided yet. */
  readonly next_attempt_at: number | null;
  /** The directory asked for no order before this time, which SIGHUP respects; null: it did not. */
  readonly held_until: number | null;
  /** Why challenges cannot be answered, or the last order failed; null if it succeeded, or there was none. */
  readonly failure: AcmeState["failure"];
  /** False: `failure` is that challenges cannot be answered. */
  readonly is_listening: boolean;
}

/** Logs at a start what an earlier one left undone, and what would be found with the next renewal. */
export function reportStart(
  dataDir: string,
  log: Logger,
  { missing, failure, next_attempt_at: next, held_until: heldUntil }: AcmeStatus,
  now: number,
): void {
  if (missing.length > 0) log.warn({ missing }, "the certificate in use lacks names");
  if (failure !== null && next !== null && next > now) {
    const said = { reason: failure.reason, next_attempt: new Date(next).toISOString() };
    if (heldUntil === null)
      log.warn(
        said,
        "the last order failed; to try again at once, run: systemctl reload signalbox",
      );
    else log.warn(said, "the last order failed; the directory asked to wait until next_attempt");
  }
  try {
    readAccountKey(dataDir);
  } catch (error) {
    log.error({ reason: messageOf(error) }, "no certificate can be ordered with the account's key");
  }
}

/** `expiresAt`: of the certificate in use, or null. */
export function reportFailure(
  log: Logger,
  { failures, failure, retry_at }: AcmeState,
  expiresAt: number | null,
): void {
  const { at = 0, reason } = failure ?? {};
  const said = { reason, failures, next_attempt: new Date(retry_at).toISOString() };
  if (expiresAt === null) log.error(said, "no certificate could be obtained");
  else if (expiresAt < at)
    log.error(said, "the certificate has expired and could not be renewed: clients cannot connect");
  else log.error(said, "the certificate could not be renewed; the current one stays in use");
}

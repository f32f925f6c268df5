/** When to renew a certificate, to ask about its renewal, and to try again. */
import { DAY_MS, HOUR_MS, MINUTE_MS } from "../../lib/text/time.ts";

/** Renewals spread over the last part of the first two thirds. */
const RENEW_AT = 2 / 3;
const JITTER = 1 / 20;
/** However late a directory wants it, this part of the lifetime is left for retries. */
const LATEST = 9 / 10;

/** Longer waits are shortened: a directory's longest limit is a week, and a clock may have been set back. */
export const WAIT_MS_MAX = 8 * DAY_MS;

/** How often a directory is asked, whatever its `Retry-After` says (RFC 9773, 4.3.2). */
const ASK_AGAIN_MS_MIN = MINUTE_MS;
export const ASK_AGAIN_MS_MAX = DAY_MS;
/** After an answer without `Retry-After`, and after a failure. */
const ASK_AGAIN_MS = 6 * HOUR_MS;

/** The first retry of an order; each further one waits three times as long: five in the first hour. */
const RETRY_MS = MINUTE_MS;
const RETRY_FACTOR = 3;
const RETRY_MS_MAX = 6 * HOUR_MS;
const RETRY_JITTER = 1 / 5;
/** The longest {@link retryDelay}. */
export const RETRY_DELAY_MS_MAX = RETRY_MS_MAX * (1 + RETRY_JITTER);
/** Shorter lifetimes than about four days are retried faster. */
const RETRY_SHARE = 1 / 100;
const RETRY_SHARE_MAX = 1 / 10;

/** From 0 to 1, as of `Math.random`. */
export type Random = () => number;

/** Epoch milliseconds. */
export interface Span {
  readonly from: number;
  readonly to: number;
}

/** A time before or at two thirds of the lifetime. */
export function timeToRenew({ from, to }: Span, random: Random): number {
  return Math.round(from + (to - from) * (RENEW_AT - JITTER * random()));
}

/** A time in the window, as RFC 9773, 4.2 says; but never so late that no time is left for retries. */
export function timeInWindow(window: Span, { from, to }: Span, random: Random): number {
  const at = window.from + (window.to - window.from) * random();
  return Math.round(Math.min(at, from + (to - from) * LATEST));
}

/** When the directory is asked for renewal information again. */
export function timeToAsk(now: number, retryAt: number | null): number {
  const waitMs = retryAt === null ? ASK_AGAIN_MS : retryAt - now;
  return now + Math.min(ASK_AGAIN_MS_MAX, Math.max(ASK_AGAIN_MS_MIN, waitMs));
}

/** How long after a number of failures in a row. `lifetimeMs`: of the certificate in use, or null. */
export function retryDelay(failures: number, lifetimeMs: number | null, random: Random): number {
  const lifetime = lifetimeMs ?? Infinity;
  const first = Math.min(RETRY_MS, lifetime * RETRY_SHARE);
  const longest = Math.min(RETRY_MS_MAX, lifetime * RETRY_SHARE_MAX);
  const grown = Math.min(longest, first * RETRY_FACTOR ** (failures - 1));
  return grown * (1 + RETRY_JITTER * random());
}

/** However often a directory asks for a renewal, orders are this far apart. */
export function orderInterval(lifetimeMs: number): number {
  return Math.min(HOUR_MS, lifetimeMs * RETRY_SHARE);
}

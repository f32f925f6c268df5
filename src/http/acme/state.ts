/** What the next order depends on, as kept in `<data>/acme/state.json`, and when it is due. Times are epoch milliseconds. */
import { createHash, X509Certificate } from "node:crypto";
import { type Static, Type } from "@sinclair/typebox";
import { DAY_MS, HOUR_MS, MINUTE_MS } from "../../lib/text/time.ts";
import { type Certificate, missingNames } from "../tls.ts";
import type { AcmePlan } from "./plan.ts";

/** Longer waits are shortened: a directory's longest limit is a week, and a clock may have been set back. */
export const WAIT_MS_MAX = 8 * DAY_MS;
const ASK_MS_MAX = DAY_MS;

/** The first retry of an order; each further one waits three times as long: five in the first hour. */
const RETRY_MS = MINUTE_MS;
const RETRY_FACTOR = 3;
const RETRY_MS_MAX = 6 * HOUR_MS;
const RETRY_JITTER = 1 / 5;
/** Shorter lifetimes than about four days are retried faster. */
const RETRY_SHARE = 1 / 100;
const RETRY_SHARE_MAX = 1 / 10;

/** From 0 to 1, as of `Math.random`. */
export type Random = () => number;

export type Lifetime = Pick<Certificate, "startsAt" | "expiresAt">;

const time = Type.Number();

export const State = Type.Object({
  /** The URL of the directory that the rest is about. */
  directory: Type.String(),
  /** The digest of the settings that the last order was made with. */
  plan: Type.String(),
  /** Where the certificate in use came from; null: nowhere yet, or unknown. */
  issuer: Type.Union([Type.String(), Type.Null()]),
  /** Failed orders since the last success. */
  failures: Type.Integer({ minimum: 0 }),
  failure: Type.Union([Type.Object({ at: time, reason: Type.String() }), Type.Null()]),
  /** No order before this time, after a failure or another order. */
  retry_at: time,
  /** The directory asked for no request before this time. */
  held_until: time,
  /** Null: not decided yet. */
  renewal: Type.Union([
    Type.Object({
      /** The fingerprint of the certificate that this is about. */
      certificate: Type.String(),
      at: time,
      /** As the directory suggested it. */
      window: Type.Union([Type.Object({ from: time, to: time }), Type.Null()]),
      /** When to ask the directory again; null: it has no renewal information. */
      ask_at: Type.Union([time, Type.Null()]),
    }),
    Type.Null(),
  ]),
});
export type AcmeState = Readonly<Static<typeof State>>;
export type Renewal = Readonly<NonNullable<AcmeState["renewal"]>>;

const untried = { failures: 0, failure: null, retry_at: 0, held_until: 0 };

/** Who is asked, and with which settings. */
export type Asked = Pick<AcmeState, "directory" | "plan">;

/** `ca`: the text of `caFile`. */
export function askedOf(plan: AcmePlan, ca: string | null): Asked {
  const text = JSON.stringify({ ...plan, ca });
  return { directory: plan.directory, plan: createHash("sha256").update(text).digest("hex") };
}

export function initialState({ directory, plan }: Asked, issuer: string | null = null): AcmeState {
  return { directory, plan, issuer, ...untried, renewal: null };
}

/** Returns what still counts of the state that an earlier start kept. */
export function resumeState(kept: AcmeState | null, asked: Asked): AcmeState {
  if (kept?.directory !== asked.directory) return initialState(asked, kept?.issuer);
  if (kept.plan === asked.plan) return kept;
  // The new settings may have removed the cause of a failure, which may be about another name; the directory's
  // own wait stays, with its reason.
  const failure = kept.held_until === 0 ? null : kept.failure;
  return { ...kept, ...asked, failures: 0, failure, retry_at: kept.held_until };
}

/**
 * Returns what counts of the state that another server has saved. New settings end a wait only at a start: servers
 * with different settings would otherwise try again in turns, without a wait.
 */
export function adoptState(saved: AcmeState, asked: Asked, isStart: boolean): AcmeState {
  return isStart ? resumeState(saved, asked) : { ...saved, ...asked };
}

/** Returns the state after a failed order. `heldUntil`: no request before then, as the directory asked. */
export function failedState(
  state: AcmeState,
  failure: NonNullable<AcmeState["failure"]>,
  heldUntil: number,
  certificate: Lifetime | null,
): AcmeState {
  const failures = state.failures + 1;
  const backoff = failure.at + retryDelay(failures, certificate, Math.random);
  const retry_at = Math.round(Math.max(backoff, heldUntil));
  return { ...state, failures, failure, retry_at, held_until: heldUntil };
}

/** How long after a number of failures in a row, with this certificate in use. */
export function retryDelay(failures: number, certificate: Lifetime | null, random: Random): number {
  const lifetime = certificate === null ? Infinity : lifetimeOf(certificate);
  const first = Math.min(RETRY_MS, lifetime * RETRY_SHARE);
  const longest = Math.min(RETRY_MS_MAX, lifetime * RETRY_SHARE_MAX);
  const grown = Math.min(longest, first * RETRY_FACTOR ** (failures - 1));
  return grown * (1 + RETRY_JITTER * random());
}

/** However often a directory asks for a renewal, orders are this far apart. */
export function orderInterval(certificate: Lifetime): number {
  return Math.min(HOUR_MS, lifetimeOf(certificate) * RETRY_SHARE);
}

function lifetimeOf({ startsAt, expiresAt }: Lifetime): number {
  return expiresAt - startsAt;
}

/**
 * Shortens waits that no settings and no directory can have made, and forgets a failure of the future: the clock
 * was set back since. Otherwise the certificate could expire meanwhile.
 */
export function boundWaits(kept: AcmeState, now: number): AcmeState {
  const isOfFuture = kept.failure !== null && kept.failure.at > now;
  const state = isOfFuture ? { ...kept, ...untried } : kept;
  const { renewal } = state;
  const held_until = Math.min(state.held_until, now + WAIT_MS_MAX);
  const latest = Math.max(held_until, now + RETRY_MS_MAX * (1 + RETRY_JITTER));
  const ask_at = renewal?.ask_at == null ? null : Math.min(renewal.ask_at, now + ASK_MS_MAX);
  return {
    ...state,
    held_until,
    retry_at: Math.min(state.retry_at, latest),
    renewal: renewal && { ...renewal, ask_at },
  };
}

/** What was decided about the certificate in use, or null. */
export function renewalOf({ renewal }: AcmeState, certificate: Certificate | null): Renewal | null {
  if (certificate === null || renewal?.certificate !== fingerprintOf(certificate)) return null;
  return renewal;
}

export function fingerprintOf({ cert }: Certificate): string {
  return new X509Certificate(cert).fingerprint256;
}

/** When the next order is due. Infinity: not decided yet. */
export function orderTime(
  { domains, directory }: Pick<AcmePlan, "domains" | "directory">,
  state: AcmeState,
  certificate: Certificate | null,
): number {
  const { retry_at, failure, issuer } = state;
  const isWanted =
    (issuer === null || issuer === directory) && missingNames(domains, certificate).length === 0;
  // Another order that succeeded does not delay this one.
  if (certificate === null || !isWanted) return failure === null ? 0 : retry_at;
  // Its time is decided next, without the directory if that does not answer.
  return Math.max(retry_at, renewalOf(state, certificate)?.at ?? Infinity);
}

/** When the directory is asked when it wants the certificate renewed. Infinity: never. */
export function questionTime(state: AcmeState, certificate: Certificate | null): number {
  if (certificate === null) return Infinity;
  const renewal = renewalOf(state, certificate);
  return renewal === null ? 0 : (renewal.ask_at ?? Infinity);
}

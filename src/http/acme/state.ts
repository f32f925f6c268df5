/** What is kept in `<data>/acme/`: the account's key, the certificate with its key, and what the next order depends on. */
import { createHash } from "node:crypto";
import { type Static, Type } from "@sinclair/typebox";
import { type AcmePlan } from "./plan.ts";
import { ASK_AGAIN_MS_MAX, RETRY_DELAY_MS_MAX, retryDelay, WAIT_MS_MAX } from "./schedule.ts";

const time = Type.Number();

/** Times are epoch milliseconds. */
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
      /** Its id for the directory; null: it has none. */
      id: Type.Union([Type.String(), Type.Null()]),
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

/** Who is asked, and with which settings. */
export type Asked = Pick<AcmeState, "directory" | "plan">;

/** `ca`: the text of `caFile`. */
export function askedOf(plan: AcmePlan, ca: string | null): Asked {
  const text = JSON.stringify({ ...plan, ca });
  return { directory: plan.directory, plan: createHash("sha256").update(text).digest("hex") };
}

export function initialState({ directory, plan }: Asked, issuer: string | null = null): AcmeState {
  return {
    directory,
    plan,
    issuer,
    failures: 0,
    failure: null,
    retry_at: 0,
    held_until: 0,
    renewal: null,
  };
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

/** Returns the state after a failed order. `heldUntil`: no request before then, as the directory asked. */
export function failedState(
  state: AcmeState,
  failure: NonNullable<AcmeState["failure"]>,
  heldUntil: number,
  lifetimeMs: number | null,
): AcmeState {
  const failures = state.failures + 1;
  const backoff = failure.at + retryDelay(failures, lifetimeMs, Math.random);
  const retry_at = Math.round(Math.max(backoff, heldUntil));
  return { ...state, failures, failure, retry_at, held_until: heldUntil };
}

/**
 * Shortens waits that no settings and no directory can have made, and forgets a failure of the future: the clock
 * was set back since. Otherwise the certificate could expire meanwhile.
 */
export function boundWaits(kept: AcmeState, now: number): AcmeState {
  const isOfFuture = kept.failure !== null && kept.failure.at > now;
  const forgotten = { failures: 0, failure: null, retry_at: 0, held_until: 0 };
  const state = isOfFuture ? { ...kept, ...forgotten } : kept;
  const { renewal } = state;
  const held_until = Math.min(state.held_until, now + WAIT_MS_MAX);
  const latest = Math.max(held_until, now + RETRY_DELAY_MS_MAX);
  const ask_at = renewal?.ask_at == null ? null : Math.min(renewal.ask_at, now + ASK_AGAIN_MS_MAX);
  return {
    ...state,
    held_until,
    retry_at: Math.min(state.retry_at, latest),
    renewal: renewal && { ...renewal, ask_at },
  };
}

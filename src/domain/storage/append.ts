/** How a signal is stored, and who sends it. */
import type { KeyLife } from "../key/key.ts";
import type { Signal } from "../signal/signal.ts";
import type { Awaitable } from "./awaitable.ts";

/** What a request to store a signal uses. */
export interface SignalStore {
  /** Returns null for an unknown key and for a read key. Called for each request: answer at once if you can. */
  findOwner(key: string): Awaitable<KeyOwner | null>;
  /**
   * Resolves when the signal, or the original that it repeats, is on disk. Ids strictly increase in
   * commit order. Rejects with `unauthorized` if the key or its desk has ended meanwhile, with `unavailable` if
   * the queue is full, the disk refuses, or the outcome is unknown, and with any other error for a
   * defect with this signal alone.
   */
  append(submission: Submission): Promise<Appended>;
}

/** A validated signal with its attribution. */
export interface Submission {
  readonly keyId: string;
  readonly deskId: number;
  readonly receivedAt: number;
  readonly signal: Signal;
}

/** `differs` names the fields in which a duplicate is not the same as the stored original. */
export type Appended =
  | { readonly deduped: false; readonly id: string }
  | { readonly deduped: true; readonly id: string; readonly differs: readonly (keyof Signal)[] };

/** Signals are not stored at present. */
export interface Outage {
  /** Epoch milliseconds. */
  readonly since: number;
  /** For people, such as "the disk is full". */
  readonly reason: string;
}

/** Signals that were not stored, for the operator's log. */
export interface StorageProblem {
  /** `unavailable`: the disk or a lock is in the way; `failed`: a defect of ours with some signals. */
  readonly kind: "unavailable" | "failed";
  /** Null when the storage cannot tell. */
  readonly obstacle: "disk" | "lock" | "database" | null;
  /** For people, such as "the disk is full". */
  readonly reason: string;
  /** The storage's own words. */
  readonly error: string;
  readonly signals: number;
}

/** A transaction that stored signals. */
export interface Transaction {
  readonly signals: number;
  readonly durationMs: number;
  /** The commit at its end: writing the log, and its fsync. */
  readonly commitMs: number;
}

export interface Identity {
  readonly keyId: string;
  readonly deskId: number;
  readonly deskName: string;
}

/** In whatever state the key is: `keyState` of `domain/key/key.ts` tells. */
export interface KeyOwner extends Identity, KeyLife {
  /** `KeyLimits` as JSON, because most keys have none; see `http/limits/key-limiter.ts`. */
  readonly limits: string | null;
}

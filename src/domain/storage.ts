/** What the service asks of its storage. `store/sqlite/` implements it. */
import type { Desk } from "./desk.ts";
import type { ApiKey } from "./key.ts";
import type { Signal } from "./signal.ts";

/** A validated signal with its attribution. */
export interface Submission {
  readonly keyId: string;
  readonly deskId: number;
  /** Epoch milliseconds, UTC. */
  readonly receivedAt: number;
  readonly signal: Signal;
}

/** `differs` names the fields in which a duplicate is not the same as the stored original. */
export type Appended =
  | { readonly deduped: false; readonly id: string }
  | { readonly deduped: true; readonly id: string; readonly differs: readonly (keyof Signal)[] };

/** Signals that were not stored, told to the operator. `unavailable`: the disk or a lock stands in the way; `failed`: a defect of ours with some signals. */
export interface StorageProblem {
  readonly kind: "unavailable" | "failed";
  readonly reason: string;
  readonly signals: number;
}

/** Who a key belongs to. */
export interface Identity {
  readonly keyId: string;
  readonly deskId: number;
  readonly deskName: string;
}

/** In whatever state the key is: `keyState` of `domain/key.ts` tells. Times are epoch milliseconds, UTC. */
export interface KeyOwner extends Identity {
  readonly expires_at: number | null;
  readonly revoked_at: number | null;
}

/** What the request path uses. */
export interface SignalStore {
  /** Null for a key that never was. */
  findOwner(key: string): KeyOwner | null;
  /**
   * Resolves once the signal, or the original that it repeats, is on disk. Rejects with
   * `unauthorized` where the key was revoked meanwhile, with `unavailable` where the queue is full or
   * the disk refuses, or the outcome is unknown, and with any other error where it failed by itself.
   */
  append(submission: Submission): Promise<Appended>;
}

export interface NewKey {
  readonly desk: string;
  readonly label: string | null;
  readonly expiresInMs: number | null;
}

export interface Rotation {
  readonly overlapMs: number;
  /** Of the successor; null: never. If absent, it lives as long from now as the old key was made to. */
  readonly expiresInMs?: number | null | undefined;
}

/** A key as minted: the one time that its plaintext exists outside the desk. */
export interface MintedKey {
  readonly key: string;
  readonly record: ApiKey;
}

/** With a desk named, another desk's key is as unknown as one that does not exist. */
export interface OfDesk {
  readonly desk?: string | null;
}

export interface KeyPage {
  readonly desk: string;
  readonly state: "active" | "ended";
  /** Only keys older than the one of this id. */
  readonly before?: string | null;
  readonly limit: number;
}

/** What the command line and the console use. All errors are `UserError`s. Changes go into the audit. */
export interface Registry {
  createDesk(name: string, options: { ifMissing: boolean }): { desk: Desk; created: boolean };
  listDesks(): Desk[];
  /** Whether the desk's members must sign in with passkeys, from their next request on. */
  requirePasskeys(desk: string, isRequired: boolean): { changed: boolean };
  /** Keys beyond a lower limit stay active; no further one is minted. */
  limitKeys(desk: string, keysMax: number): void;
  /** Refused where the desk has as many active keys as it may. */
  mintKey(key: NewKey): MintedKey;
  /** All keys, or those of one desk, oldest first. */
  listKeys(desk: string | null): ApiKey[];
  /** A desk's keys, newest first. */
  pageKeys(page: KeyPage): ApiKey[];
  /** Null for an id that is unknown. */
  findKey(id: string, of?: OfDesk): ApiKey | null;
  /** Null for a key that was not rotated. */
  findSuccessor(key: ApiKey): ApiKey | null;
  /** Whether another active key of the desk has the same label. */
  hasNamesake(key: ApiKey): boolean;
  /** Idempotent. When it has returned, no signal of this key commits any more. */
  revokeKey(id: string, of?: OfDesk): { record: ApiKey; changed: boolean };
  /**
   * Mints a successor with the same desk and label, and the same lifetime unless told otherwise; the
   * old key expires after `overlapMs`, or sooner if it would anyway. A key is rotated once; after that its
   * successor is rotated. A desk with as many active keys as it
   * may have can still rotate each of them: a key in its overlap does not count, and there are at most
   * as many of these as of the others.
   */
  rotateKey(id: string, options: Rotation & OfDesk): { minted: MintedKey; old: ApiKey };
}

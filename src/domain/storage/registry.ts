/** Desks and their keys. Every error is a `UserError`; every change is in the audit. */
import type { Desk, DeskOverview, DeskRef } from "../desk/desk.ts";
import type { SilenceRule } from "../desk/silence.ts";
import type { ApiKey, KeyScope } from "../key/key.ts";
import type { AskedLimits } from "../key/limits.ts";
import type { Author } from "./author.ts";
import type { Awaitable } from "./awaitable.ts";

export type Registry = Desks & Keys;

export interface Desks {
  /** By an administrator. */
  createDesk(
    name: string,
    options: { ifMissing: boolean },
  ): Awaitable<{ desk: Desk; created: boolean }>;
  /** By name, archived desks included. */
  listDesks(): Awaitable<Desk[]>;
  /** {@link listDesks} with more. Counts signals up to `signalsMax`, by default `SIGNALS_COUNTED_MAX`. */
  listOverviews(signalsMax?: number): Awaitable<DeskOverview[]>;
  getDesk(desk: DeskRef): Awaitable<Desk>;
  /** Whether the desk's members must sign in with passkeys, from their next request on. By an administrator. */
  requirePasskeys(desk: string, isRequired: boolean): Awaitable<{ changed: boolean }>;
  /** Whether what rejected requests and differing duplicates sent is kept. If not, call `Activity.forgetSent` next. */
  keepSent(desk: DeskRef, isKept: boolean, by: Author): Awaitable<{ changed: boolean }>;
  /** Everything of the desk stays. By an administrator. */
  renameDesk(name: string, newName: string): Awaitable<{ changed: boolean }>;
  /**
   * While a desk is archived, its keys, members and links do not work, and it gets no new ones. When this
   * has returned, no signal of the desk commits any more, and its members' sessions have ended. Nothing is
   * deleted: with `isArchived` false everything but the sessions works again. By an administrator.
   */
  archiveDesk(desk: string, isArchived: boolean): Awaitable<{ changed: boolean }>;
  /** Keys beyond a lower limit stay active, and no further one is minted. By an administrator. */
  limitKeys(desk: string, keysMax: number): Awaitable<void>;
  silenceRule(desk: DeskRef): Awaitable<SilenceRule>;
  setSilenceRule(desk: DeskRef, rule: SilenceRule, by: Author): Awaitable<void>;
}

export interface Keys {
  /** Why {@link mintKey} would refuse, in a sentence; null if it would not. */
  mintObstacle(desk: DeskRef): Awaitable<string | null>;
  /** Refused when the desk has as many active keys as it may have; of read keys for all desks, there may be 100. */
  mintKey(key: NewKey, by: Author): Awaitable<MintedKey>;
  /** All keys, or those of one desk, oldest first. */
  listKeys(desk: string | null): Awaitable<ApiKey[]>;
  /** A desk's keys, newest first. */
  pageKeys(page: KeyPage): Awaitable<ApiKey[]>;
  /**
   * Active keys of a desk that expire before this time and have no successor, the first to expire first.
   */
  expiringKeys(of: KeysOf, before: number): Awaitable<ApiKey[]>;
  /**
   * Active keys that were used since they have a successor, in the last `IN_USE_MS` or later than the successor, the
   * first to expire first.
   */
  rotatedKeysInUse(of: KeysOf): Awaitable<ApiKey[]>;
  /** In this order, each once, without unknown ids. */
  findKeys(ids: readonly string[]): Awaitable<ApiKey[]>;
  /** Returns null for an unknown id. */
  findKey(id: string, of?: OfDesk): Awaitable<ApiKey | null>;
  /** By the key itself. Returns null for an unknown one. */
  findKeyItself(key: string): Awaitable<ApiKey | null>;
  /** Whether another active key of the desk has the same label. */
  hasNamesake(key: ApiKey): Awaitable<boolean>;
  /** Idempotent. When it has returned, no signal of this key commits any more, and a read key reads nothing more. */
  revokeKey(id: string, of: OfDesk, by: Author): Awaitable<{ record: ApiKey; changed: boolean }>;
  /** In any state. Idempotent. */
  relabelKey(
    id: string,
    label: string,
    of: OfDesk,
    by: Author,
  ): Awaitable<{ record: ApiKey; changed: boolean }>;
  /**
   * Mints a successor with the same desk, label and limits, and the same lifetime unless told otherwise. The old
   * key expires after `overlapMs`, or at its own expiry if that is sooner. While the successor is active, rotate that
   * one; if it was revoked or has expired, the old key gets another. A desk at its limit can still rotate each key: keys in their overlap do
   * not count, and there may be as many of them as of the others.
   */
  rotateKey(
    id: string,
    options: Rotation & OfDesk,
    by: Author,
  ): Awaitable<{ minted: MintedKey; old: ApiKey }>;
}

/** Those of a desk; null: the read keys for all desks; `EVERY_DESK`: all of these. */
export type KeysOf = DeskRef | null;

/** `desk` null: for all desks. */
export type NewKey = (
  | { readonly scope: "send"; readonly desk: DeskRef }
  | { readonly scope: "read"; readonly desk: DeskRef | null }
) & {
  readonly label: string | null;
  readonly expiresInMs: number | null;
  /** For good. */
  readonly limits?: AskedLimits | null;
};

/** A new key: the only time that its plaintext is known. */
export interface MintedKey {
  readonly key: string;
  readonly record: ApiKey;
}

export interface Rotation {
  readonly overlapMs: number;
  /** The lifetime of the successor; null: it never expires. If absent, that of the old key, from now. */
  readonly expiresInMs?: number | null | undefined;
}

/** If a desk is named, another desk's key is treated as unknown. */
export interface OfDesk {
  readonly desk?: DeskRef | null;
}

export interface KeyPage {
  readonly desk: DeskRef;
  readonly state: "active" | "ended";
  /** Only keys older than the one with this id. */
  readonly before?: string | null;
  /** Null: of both scopes. */
  readonly scope?: KeyScope | null;
  readonly limit: number;
}

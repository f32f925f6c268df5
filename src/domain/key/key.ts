/**
 * API keys (`SPEC.md` 2.4, 5): a fixed prefix and 64 hexadecimal digits, 256 random bits. Only the
 * SHA-256 of the whole key is ever stored; with that much entropy a slow password hash adds nothing.
 * A key of the scope `send` stores signals, one of the scope `read` reads the feed, and neither does both.
 */
import { DAY_MS, HOUR_MS } from "../../lib/text/time.ts";
import type { KeyLimits } from "./limits.ts";

export type KeyScope = "send" | "read";

export const keyPrefixes: Readonly<Record<KeyScope, string>> = { send: "sbk_", read: "sbr_" };
const SECRET = "[0-9a-f]{64}";
export const keyPatterns: Readonly<Record<KeyScope, string>> = {
  send: `^${keyPrefixes.send}${SECRET}$`,
  read: `^${keyPrefixes.read}${SECRET}$`,
};
const prefixes = Object.values(keyPrefixes);
const ANY_PREFIX = `(${prefixes.join("|")})`;

/** A key that was used within this time counts as in use. */
export const IN_USE_MS = HOUR_MS;

/** An ended key is still in use if it was refused in the hour under way, or the 23 before it. */
export const STILL_IN_USE_MS = 23 * HOUR_MS;

/** Time to rotate a key before it expires. */
export const EXPIRING_SOON_DAYS = 7;
export const EXPIRING_SOON_MS = EXPIRING_SOON_DAYS * DAY_MS;
/** The last time to do so. */
export const LAST_DAY_MS = DAY_MS;

const formsOfKeys: Readonly<Record<KeyScope, RegExp>> = {
  send: new RegExp(keyPatterns.send),
  read: new RegExp(keyPatterns.read),
};

/** A key without its secret. Times are epoch milliseconds, UTC. */
export interface ApiKey {
  readonly id: string;
  readonly scope: KeyScope;
  /** Null: a read key for all desks. */
  readonly desk: string | null;
  readonly label: string | null;
  readonly last4: string;
  readonly created_at: number;
  readonly expires_at: number | null;
  readonly last_used_at: number | null;
  readonly revoked_at: number | null;
  /** When its desk was archived; null while the desk is in use. */
  readonly desk_archived_at: number | null;
  /** Of the active key that a rotation made to replace it; null: there is none. */
  readonly successor_id: string | null;
  /** As it was minted; null: for ever. A rotation shortens only `expires_at`. */
  readonly lifetime_ms: number | null;
  /** Null: nothing is limited. */
  readonly limits: KeyLimits | null;
}

/** What decides whether a key works. */
export type KeyLife = Pick<ApiKey, "expires_at" | "revoked_at" | "desk_archived_at">;

/** `archived`: it would be active if its desk were not archived. */
export type KeyState = "active" | "expired" | "revoked" | "archived";

export function keyState(key: KeyLife, now: number): KeyState {
  if (key.revoked_at !== null) return "revoked";
  if (key.expires_at !== null && key.expires_at <= now) return "expired";
  return key.desk_archived_at === null ? "active" : "archived";
}

/** For people: `rotated` is active, and is to be replaced by its successor. */
export function shownState(
  key: KeyLife & Pick<ApiKey, "successor_id">,
  now: number,
): KeyState | "rotated" {
  const state = keyState(key, now);
  return state === "active" && key.successor_id !== null ? "rotated" : state;
}

export function generateKey(scope: KeyScope): string {
  return (
    keyPrefixes[scope] + Buffer.from(crypto.getRandomValues(new Uint8Array(32))).toString("hex")
  );
}

export function isWellFormedKey(text: string, scope: KeyScope): boolean {
  return formsOfKeys[scope].test(text);
}

/** Whether a text begins like a key. */
export function looksLikeKey(text: string): boolean {
  return prefixes.some((prefix) => text.startsWith(prefix));
}

const KEYS = new RegExp(`${ANY_PREFIX}${SECRET}`, "g");

/** Returns the different keys in a text. */
export function keysIn(text: string): string[] {
  return [...new Set(text.match(KEYS))];
}

/** Parts of a key, too. */
const LIKE_KEYS = new RegExp(`${ANY_PREFIX}[0-9a-f]{8,}`, "gi");

/** Replaces each key in a text by its prefix and `…`. */
export function redactKeys(text: string): string {
  return text.replaceAll(LIKE_KEYS, (_, prefix: string) => `${prefix.toLowerCase()}…`);
}

/** SHA-256 of the whole key, prefix included: 32 bytes. */
export function hashKey(key: string): Uint8Array {
  return Bun.SHA256.hash(key, new Uint8Array(32)) as Uint8Array;
}

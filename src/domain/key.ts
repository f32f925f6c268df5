/**
 * API keys (`SPEC.md` 2.4, 5): a fixed prefix and 64 hexadecimal digits, 256 random bits. Only the
 * SHA-256 of the whole key is ever stored; with that much entropy a slow password hash adds nothing.
 */
import { DAY_MS } from "./time.ts";

export const KEY_PREFIX = "sbk_";
export const KEY_PATTERN = "^sbk_[0-9a-f]{64}$";

/** Time to rotate a key before it expires. */
export const EXPIRING_SOON_DAYS = 7;
export const EXPIRING_SOON_MS = EXPIRING_SOON_DAYS * DAY_MS;

const keyPattern = new RegExp(KEY_PATTERN);

/** A key without its secret. Times are epoch milliseconds, UTC. */
export interface ApiKey {
  readonly id: string;
  readonly desk: string;
  readonly label: string | null;
  readonly last4: string;
  readonly created_at: number;
  readonly expires_at: number | null;
  readonly last_used_at: number | null;
  readonly revoked_at: number | null;
  /** When its desk was archived; null while the desk is in use. */
  readonly desk_archived_at: number | null;
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

export function generateKey(): string {
  return KEY_PREFIX + Buffer.from(crypto.getRandomValues(new Uint8Array(32))).toString("hex");
}

export function isWellFormedKey(text: string): boolean {
  return keyPattern.test(text);
}

/** Replaces each key in a text by `sbk_…`. */
export function redactKeys(text: string): string {
  return text.replaceAll(/sbk_[0-9a-f]{8,}/gi, `${KEY_PREFIX}…`);
}

/** SHA-256 of the whole key, prefix included: 32 bytes. */
export function hashKey(key: string): Uint8Array {
  return Bun.SHA256.hash(key, new Uint8Array(32)) as Uint8Array;
}

/** Authenticates a request by its headers (`SPEC.md` 5). */
import { AppError } from "../domain/errors.ts";
import { isWellFormedKey, keyState } from "../domain/key/key.ts";
import type { KeyOwner, SignalStore } from "../domain/storage/append.ts";
import type { Awaitable } from "../domain/storage/awaitable.ts";
import { presentedKey } from "../http/credentials.ts";

/**
 * Finds the owner of the presented key, which may be revoked or expired: see {@link requireActive}.
 * Malformed, unknown, revoked, expired and read keys get the same answer.
 */
export function findOwner(headers: Headers, store: SignalStore): Awaitable<KeyOwner | null> {
  const key = presentedKey(headers);
  return isWellFormedKey(key, "send") ? store.findOwner(key) : null;
}

export function requireActive(owner: KeyOwner, now: number): void {
  if (keyState(owner, now) !== "active") throw new AppError("unauthorized");
}

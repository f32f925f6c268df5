/** Who sends a request (`SPEC.md` 5): decided from the headers alone. */
import { AppError } from "../domain/errors.ts";
import { isWellFormedKey, KEY_PREFIX, keyState } from "../domain/key.ts";
import type { KeyOwner, SignalStore } from "../domain/store.ts";

/** RFC 6750, 2.1, with the scheme in any case (RFC 9110, 11.1). */
const BEARER = /^bearer +(\S+)$/i;
const USUAL = `Bearer ${KEY_PREFIX}`;

/**
 * The owner of the presented key, which may be revoked or expired: {@link requireActive}. Missing,
 * malformed, unknown, revoked and expired keys are told apart in no answer: all throw the same
 * `unauthorized`.
 */
export function identify(headers: Headers, store: SignalStore): KeyOwner {
  const key = presentedKey(headers);
  if (key === null || !isWellFormedKey(key)) throw new AppError("unauthorized");
  const owner = store.findOwner(key);
  if (owner === null) throw new AppError("unauthorized");
  return owner;
}

export function requireActive(owner: KeyOwner, now: number): void {
  if (keyState(owner, now) !== "active") throw new AppError("unauthorized");
}

/** `Authorization` is used when present; an `X-API-Key` beside it must say the same. */
function presentedKey(headers: Headers): string | null {
  const authorization = headers.get("authorization");
  const xApiKey = headers.get("x-api-key");
  if (authorization === null) return xApiKey;
  const bearer = bearerOf(authorization);
  return xApiKey === null || xApiKey === bearer ? bearer : null;
}

/** What nearly all clients send needs no pattern. */
function bearerOf(authorization: string): string | null {
  if (authorization.startsWith(USUAL)) return authorization.slice(USUAL.length - KEY_PREFIX.length);
  return BEARER.exec(authorization)?.[1] ?? null;
}

/** Who sends a request (`SPEC.md` 5): decided from the headers alone. */
import { AppError } from "../domain/errors.ts";
import { isWellFormedKey, KEY_PREFIX, keyState } from "../domain/key.ts";
import type { KeyOwner, SignalStore } from "../domain/storage.ts";

/** RFC 6750, 2.1, with the scheme in any case (RFC 9110, 11.1). */
const BEARER = /^bearer +(\S+)$/i;
const USUAL = `Bearer ${KEY_PREFIX}`;

const HOW = "send the header Authorization: Bearer <API_KEY>";
const NO_KEY = `The request has no API key; ${HOW}.`;
const NO_SCHEME = `The word Bearer is missing before the API key; ${HOW}.`;
const OTHER_SCHEME = `The Authorization header is not of the form Bearer <API_KEY>; ${HOW}.`;
const EMPTY_KEY = `There is no API key after the word Bearer; ${HOW}.`;
const TWO_KEYS = "Authorization and X-API-Key carry different keys; send only one of the two.";

/**
 * Returns the owner of the presented key, which may be revoked or expired: see {@link requireActive}.
 * Malformed, unknown, revoked and expired keys get the same answer. No answer repeats what was sent.
 */
export function identify(headers: Headers, store: SignalStore): KeyOwner {
  const key = presentedKey(headers);
  if (!isWellFormedKey(key)) throw new AppError("unauthorized");
  const owner = store.findOwner(key);
  if (owner === null) throw new AppError("unauthorized");
  return owner;
}

export function requireActive(owner: KeyOwner, now: number): void {
  if (keyState(owner, now) !== "active") throw new AppError("unauthorized");
}

/** Uses `Authorization` when present; an `X-API-Key` beside it must carry the same key. */
function presentedKey(headers: Headers): string {
  const authorization = headers.get("authorization");
  const xApiKey = headers.get("x-api-key");
  if (authorization === null) return xApiKey ?? refuse(NO_KEY);
  const bearer = bearerOf(authorization);
  if (xApiKey !== null && xApiKey !== bearer) refuse(TWO_KEYS);
  return bearer;
}

/** What nearly all clients send needs no pattern. */
function bearerOf(authorization: string): string {
  if (authorization.startsWith(USUAL)) return authorization.slice(USUAL.length - KEY_PREFIX.length);
  return BEARER.exec(authorization)?.[1] ?? refuse(explainScheme(authorization));
}

/** Judges the form alone, so that the answer is the same for every key. */
function explainScheme(authorization: string): string {
  if (/^bearer$/i.test(authorization)) return EMPTY_KEY;
  return authorization.startsWith(KEY_PREFIX) ? NO_SCHEME : OTHER_SCHEME;
}

function refuse(message: string): never {
  throw new AppError("unauthorized", { message });
}

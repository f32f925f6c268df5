/** Authenticates a request by its headers (`SPEC.md` 5). */
import { AppError } from "../domain/errors.ts";
import { isWellFormedKey, KEY_PREFIX, keyState } from "../domain/key.ts";
import type { Awaitable, KeyOwner, SignalStore } from "../domain/storage.ts";

/** RFC 6750, 2.1, with the scheme in any case (RFC 9110, 11.1). */
const BEARER = /^bearer +(.+)$/i;

const HOW = "send the header Authorization: Bearer <API_KEY>";

/** Messages of a 401. They depend on the form of the headers only, never on the key. */
const messages = {
  noKey: `The request has no API key; ${HOW}.`,
  noScheme: `The word Bearer is missing before the API key; ${HOW}.`,
  otherScheme: `The Authorization header is not of the form Bearer <API_KEY>; ${HOW}.`,
  emptyKey: `There is no API key after the word Bearer; ${HOW}.`,
  twoKeys: "Authorization and X-API-Key carry different keys; send only one of the two.",
} as const;

/**
 * Finds the owner of the presented key, which may be revoked or expired: see {@link requireActive}.
 * Malformed, unknown, revoked and expired keys get the same answer. No answer repeats what was sent.
 */
export function findOwner(headers: Headers, store: SignalStore): Awaitable<KeyOwner | null> {
  const key = presentedKey(headers);
  return isWellFormedKey(key) ? store.findOwner(key) : null;
}

export function requireActive(owner: KeyOwner, now: number): void {
  if (keyState(owner, now) !== "active") throw new AppError("unauthorized");
}

/** Prefers `Authorization`; an `X-API-Key` beside it must carry the same key. */
function presentedKey(headers: Headers): string {
  const authorization = headers.get("authorization");
  const xApiKey = headers.get("x-api-key");
  if (authorization === null) return xApiKey ?? refuse("noKey");
  const key = BEARER.exec(authorization)?.[1] ?? refuse(formError(authorization));
  return xApiKey === null || xApiKey === key ? key : refuse("twoKeys");
}

function formError(authorization: string): keyof typeof messages {
  if (authorization.toLowerCase() === "bearer") return "emptyKey";
  return authorization.startsWith(KEY_PREFIX) ? "noScheme" : "otherScheme";
}

function refuse(reason: keyof typeof messages): never {
  throw new AppError("unauthorized", { message: messages[reason] });
}

/** Who sends a request (`SPEC.md` 5): decided from the headers alone. */
import { AppError } from "../domain/errors.ts";
import { hashKey, isWellFormedKey } from "../domain/key.ts";
import type { Identity, SignalStore } from "../domain/store.ts";

/** RFC 6750, 2.1, with the scheme in any case (RFC 9110, 11.1). */
const BEARER = /^bearer +(\S+)$/i;

/**
 * The owner of the presented key. Missing, malformed, unknown, revoked and expired keys are told
 * apart nowhere: all throw the same `unauthorized`.
 */
export function authenticate(headers: Headers, store: SignalStore, now: number): Identity {
  const key = presentedKey(headers);
  if (key === null || !isWellFormedKey(key)) throw new AppError("unauthorized");
  const identity = store.authenticate(hashKey(key), now);
  if (identity === null) throw new AppError("unauthorized");
  return identity;
}

/** `Authorization` is used when present; an `X-API-Key` beside it must say the same. */
function presentedKey(headers: Headers): string | null {
  const authorization = headers.get("authorization");
  const xApiKey = headers.get("x-api-key");
  if (authorization === null) return xApiKey;
  const bearer = BEARER.exec(authorization)?.[1] ?? null;
  return xApiKey === null || xApiKey === bearer ? bearer : null;
}

/** Finds the key in a request's headers (`SPEC.md` 5). */
import { AppError } from "../domain/errors.ts";
import { looksLikeKey } from "../domain/key/key.ts";

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
 * Prefers `Authorization`; an `X-API-Key` beside it must carry the same key. Throws `unauthorized`. No
 * answer repeats what was sent.
 */
export function presentedKey(headers: Headers): string {
  const authorization = headers.get("authorization");
  const xApiKey = headers.get("x-api-key");
  if (authorization === null) return xApiKey ?? refuse("noKey");
  const key = BEARER.exec(authorization)?.[1] ?? refuse(formError(authorization));
  return xApiKey === null || xApiKey === key ? key : refuse("twoKeys");
}

/** What stands in the place of a key, whatever its form; null: nothing. */
export function textOfKey(headers: Headers): string | null {
  return headers.get("authorization")?.replace(/^bearer +/i, "") ?? headers.get("x-api-key");
}

function formError(authorization: string): keyof typeof messages {
  if (authorization.toLowerCase() === "bearer") return "emptyKey";
  return looksLikeKey(authorization) ? "noScheme" : "otherScheme";
}

function refuse(reason: keyof typeof messages): never {
  throw new AppError("unauthorized", { message: messages[reason] });
}

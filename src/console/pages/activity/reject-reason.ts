/** Why a request was rejected, as it is recorded. */
import type { RejectReason } from "../../../domain/activity/activity.ts";
import { REJECT_FIELDS_MAX } from "../../../domain/activity/sent.ts";
import {
  answeredCode,
  type AppError,
  errorCatalogue,
  UNKNOWN_FIELD,
} from "../../../domain/errors.ts";
import { withoutSecrets } from "../../../domain/activity/secrets.ts";

/** Characters of a field's name that a client made up. */
const FIELD_NAME_MAX = 100;
/** So that what is cut has no start of a key. */
const FIELD_NAME_LOOKED_AT = 3 * FIELD_NAME_MAX;
/** Shorter ones need no look. */
const KEY_LENGTH_MIN = 8;

/**
 * Returns what the client was told, or what only its desk is told; null is a defect of ours, which is not described. Keeps all known fields and
 * a few unknown ones: there may be thousands, or a key as a name.
 */
export function reasonOf(error: AppError | null): RejectReason {
  const code = error?.seenCode ?? "internal_error";
  const { status } = errorCatalogue[answeredCode(code)];
  const { fields: told, unlistedFields = 0 } = error?.detail ?? {};
  if (told === undefined) return { status, error: code, fields: null, moreFields: 0 };
  const all = Object.entries(told);
  const known = all.filter(([, reason]) => reason !== UNKNOWN_FIELD);
  const unknown = all
    .filter(([, reason]) => reason === UNKNOWN_FIELD)
    .slice(0, Math.max(0, REJECT_FIELDS_MAX - known.length))
    .map(([name, reason]) => [recordedName(name), reason] as const);
  const moreFields = all.length - known.length - unknown.length + unlistedFields;
  return { status, error: code, fields: Object.fromEntries([...known, ...unknown]), moreFields };
}

export function messageOf(error: AppError | null): string | null {
  const { message } = errorCatalogue[error?.code ?? "internal_error"];
  const { untold, message: told = message } = error?.detail ?? {};
  return untold?.message ?? (message === null ? null : told);
}

/** Returns a field's name, which may be long or a key, as it is recorded. */
export function recordedName(field: string): string {
  const start = field.slice(0, FIELD_NAME_LOOKED_AT);
  const name = start.length < KEY_LENGTH_MIN ? start : withoutSecrets(start);
  if (name.length <= FIELD_NAME_MAX) return name;
  // Replaces half a pair of surrogates, which no database keeps, by U+FFFD.
  return `${name.slice(0, FIELD_NAME_MAX).toWellFormed()}…`;
}

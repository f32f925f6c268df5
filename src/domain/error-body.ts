/** The body of an error answer (`SPEC.md` 2.3). */
import {
  type AppError,
  errorCatalogue,
  type FieldReasons,
  noReasons,
  UNKNOWN_FIELD,
} from "./errors.ts";
import { nearest } from "../lib/text/nearest.ts";
import { fieldNames } from "./signal/signal.ts";

export function errorBody({ code, detail }: AppError): Record<string, unknown> {
  const { message } = errorCatalogue[code];
  const body: Record<string, unknown> = { error: code };
  if (message !== null) body["message"] = detail.message ?? message;
  if (detail.fields !== undefined) {
    body["fields"] = withHints(detail.fields, detail.unlistedFields ?? 0);
  }
  return body;
}

/** The known field that an unknown name may stand for. */
export function meantField(name: string): string | null {
  return nearest(name, fieldNames);
}

/** Suggests a known field for each unknown name. The last one's reason says how many more there are. */
function withHints(fields: FieldReasons, unlisted: number): FieldReasons {
  const hinted = noReasons();
  let last: string | null = null;
  for (const [name, reason] of Object.entries(fields)) {
    const isUnknown = reason === UNKNOWN_FIELD;
    const meant = isUnknown ? meantField(name) : null;
    hinted[name] = meant === null ? reason : `${reason}; did you mean ${meant}?`;
    if (isUnknown) last = name;
  }
  if (last !== null && unlisted > 0) {
    const mark = hinted[last] === UNKNOWN_FIELD ? ";" : "";
    const more = unlisted === 1 ? "1 more unknown field is" : `${unlisted} more unknown fields are`;
    hinted[last] += `${mark} ${more} not listed`;
  }
  return hinted;
}

/** The body of an error answer (`SPEC.md` 2.3). */
import {
  type AppError,
  errorCatalogue,
  type FieldReasons,
  noReasons,
  UNKNOWN_FIELD,
} from "./errors.ts";
import { nearest } from "./nearest.ts";
import { fieldNames } from "./signal.ts";

export function errorBody({ code, detail }: AppError): Record<string, unknown> {
  const { message } = errorCatalogue[code];
  const body: Record<string, unknown> = { error: code };
  if (message !== null) body["message"] = detail.message ?? message;
  if (detail.fields !== undefined) body["fields"] = withHints(detail.fields);
  return body;
}

/** The known field that an unknown name may stand for. */
export function meantField(name: string): string | null {
  return nearest(name, fieldNames);
}

/** Suggests a known field for each unknown name. */
function withHints(fields: FieldReasons): FieldReasons {
  const hinted = noReasons();
  for (const [name, reason] of Object.entries(fields)) {
    const meant = reason === UNKNOWN_FIELD ? meantField(name) : null;
    hinted[name] = meant === null ? reason : `${reason}; did you mean ${meant}?`;
  }
  return hinted;
}

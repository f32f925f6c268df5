/** Makes the bodies and headers of all answers to signals and of all errors (`SPEC.md` 2.2, 2.3). */
import {
  AppError,
  errorCatalogue,
  type FieldReasons,
  noReasons,
  UNKNOWN_FIELD,
} from "../domain/errors.ts";
import { nearest } from "../domain/nearest.ts";
import { fieldNames } from "../domain/signal.ts";
import type { Appended } from "../domain/storage.ts";

/** 201 or 200. The fields in which a duplicate differs go into a header, because the body is fixed. */
export function acceptedResponse(
  appended: Appended,
  receivedAt: number,
  requestId: string,
): Response {
  const headers: Record<string, string> = {
    "Content-Type": "application/json",
    "X-Request-Id": requestId,
  };
  if (!appended.deduped) {
    const body = `{"id":"${appended.id}","received_at":${receivedAt},"deduped":false}`;
    return new Response(body, { status: 201, headers });
  }
  if (appended.differs.length > 0) headers["X-Duplicate-Differs"] = appended.differs.join(", ");
  return new Response(`{"id":"${appended.id}","deduped":true}`, { status: 200, headers });
}

/** Turns any error into a response. One that is not an {@link AppError} becomes `internal_error`, without details. */
export function errorResponse(error: unknown, requestId: string): Response {
  const { code, detail } = error instanceof AppError ? error : new AppError("internal_error");
  const { status, message } = errorCatalogue[code];
  const body: Record<string, unknown> = { error: code };
  if (message !== null) body["message"] = detail.message ?? message;
  if (detail.fields !== undefined) body["fields"] = withHints(detail.fields);
  const headers: Record<string, string> = {
    "Content-Type": "application/json",
    "X-Request-Id": requestId,
  };
  if (code === "unauthorized") headers["WWW-Authenticate"] = "Bearer";
  if (detail.allow !== undefined) headers["Allow"] = detail.allow;
  if (detail.retryAfterS !== undefined) headers["Retry-After"] = String(detail.retryAfterS);
  return new Response(JSON.stringify(body), { status, headers });
}

/** Suggests a known field for each unknown name. */
function withHints(fields: FieldReasons): FieldReasons {
  const hinted = noReasons();
  for (const [name, reason] of Object.entries(fields)) {
    const meant = reason === UNKNOWN_FIELD ? nearest(name, fieldNames) : null;
    hinted[name] = meant === null ? reason : `${reason}; did you mean ${meant}?`;
  }
  return hinted;
}

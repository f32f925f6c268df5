/** Every response of the public interface is made here (`SPEC.md` 2.2, 2.3). */
import {
  AppError,
  type ErrorCode,
  errorCatalogue,
  type FieldReasons,
  noReasons,
  UNKNOWN_FIELD,
} from "../domain/errors.ts";
import { nearest } from "../domain/nearest.ts";
import { fieldNames } from "../domain/signal.ts";
import type { Appended } from "../domain/storage.ts";

interface ErrorBody {
  error: ErrorCode;
  message?: string;
  fields?: FieldReasons;
}

/** 201 or 200. A duplicate whose content is not the original's says so in a header: the body is fixed. */
export function accepted(appended: Appended, receivedAt: number, requestId: string): Response {
  if (!appended.deduped) {
    return new Response(`{"id":"${appended.id}","received_at":${receivedAt},"deduped":false}`, {
      status: 201,
      headers: { "Content-Type": "application/json", "X-Request-Id": requestId },
    });
  }
  const headers: Record<string, string> = {
    "Content-Type": "application/json",
    "X-Request-Id": requestId,
  };
  if (appended.differs.length > 0) headers["X-Duplicate-Differs"] = appended.differs.join(", ");
  return new Response(`{"id":"${appended.id}","deduped":true}`, { status: 200, headers });
}

/** The one place where an error becomes a response. What is not an {@link AppError} tells nothing. */
export function refused(error: unknown, requestId: string): Response {
  const { code, detail } = error instanceof AppError ? error : new AppError("internal_error");
  const { status, message } = errorCatalogue[code];
  const body: ErrorBody = { error: code };
  if (message !== null) body.message = detail.message ?? message;
  if (detail.fields !== undefined) body.fields = withHints(detail.fields);
  const headers: Record<string, string> = {
    "Content-Type": "application/json",
    "X-Request-Id": requestId,
  };
  if (code === "unauthorized") headers["WWW-Authenticate"] = "Bearer";
  if (detail.allow !== undefined) headers["Allow"] = detail.allow;
  if (detail.retryAfterS !== undefined) headers["Retry-After"] = String(detail.retryAfterS);
  return new Response(JSON.stringify(body), { status, headers });
}

/** Adds the field that was probably meant. The names that a client made up go into its own answer only. */
function withHints(fields: FieldReasons): FieldReasons {
  const hinted = noReasons();
  for (const [name, reason] of Object.entries(fields)) {
    const meant = reason === UNKNOWN_FIELD ? nearest(name, fieldNames) : null;
    hinted[name] = meant === null ? reason : `${reason}; did you mean ${meant}?`;
  }
  return hinted;
}

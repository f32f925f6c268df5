/** Makes the bodies and headers of all answers to signals and of all errors (`SPEC.md` 2.2, 2.3). */
import { errorBody } from "../domain/error-body.ts";
import { AppError, errorCatalogue } from "../domain/errors.ts";
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
  const known = error instanceof AppError ? error : new AppError("internal_error");
  const { code, detail } = known;
  const headers: Record<string, string> = {
    "Content-Type": "application/json",
    "X-Request-Id": requestId,
  };
  if (code === "unauthorized") headers["WWW-Authenticate"] = "Bearer";
  if (detail.allow !== undefined) headers["Allow"] = detail.allow;
  if (detail.retryAfterS !== undefined) headers["Retry-After"] = String(detail.retryAfterS);
  return new Response(JSON.stringify(errorBody(known)), {
    status: errorCatalogue[code].status,
    headers,
  });
}

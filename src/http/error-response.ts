/** The answer to a request that failed (`SPEC.md` 2.3). */
import { errorBody } from "../domain/error-body.ts";
import { AppError, errorCatalogue } from "../domain/errors.ts";

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

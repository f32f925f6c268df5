/** @jsxImportSource preact */
/** The answer to more attempts than there may be (RFC 6585, 4). */
import { LimitedPage } from "./pages/sign-in.tsx";
import { page } from "./responses.ts";
import type { Visit } from "./visit.ts";

/** `retryAt`: epoch milliseconds. */
export function limited(visit: Visit, retryAt: number): Response {
  const response = page(<LimitedPage visit={visit} retryAt={retryAt} />, 429);
  // Whole seconds, never too few.
  const retryAfterS = Math.max(1, Math.ceil((retryAt - visit.now) / 1_000));
  response.headers.set("Retry-After", String(retryAfterS));
  return response;
}

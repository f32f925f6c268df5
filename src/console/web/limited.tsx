/** The answer to more attempts than there may be (RFC 6585, 4). */
import { LimitedPage } from "../sign-in/page.tsx";
import { page } from "./responses.ts";
import type { Visit } from "./visit.ts";

/** The time is rounded up to whole minutes. Epoch milliseconds. */
export function tooManyAttempts(retryAt: number, now: number): string {
  const minutes = Math.max(1, Math.ceil((retryAt - now) / 60_000));
  return `Too many failed attempts. Try again in ${minutes === 1 ? "1 minute" : `${minutes} minutes`}.`;
}

/** `retryAt`: epoch milliseconds. */
export function limited(visit: Visit, retryAt: number): Response {
  const response = page(
    <LimitedPage visit={visit} problem={tooManyAttempts(retryAt, visit.now)} />,
    429,
  );
  // Whole seconds, never too few.
  const retryAfterS = Math.max(1, Math.ceil((retryAt - visit.now) / 1_000));
  response.headers.set("Retry-After", String(retryAfterS));
  return response;
}

/** The answers to forms that are refused. */
import { NotFoundError, UserError } from "../../domain/errors.ts";
import { LimitedPage } from "../sign-in/page.tsx";
import { notFoundPage } from "./problems.tsx";
import { json, page } from "./responses.ts";
import type { Visit } from "./visit.ts";

/** Thrown for more attempts to sign in or to confirm than are allowed. */
export class TooManyAttemptsError extends Error {
  /** Epoch milliseconds. */
  readonly retryAt: number;

  constructor(retryAt: number) {
    super("too many attempts");
    this.retryAt = retryAt;
  }
}

/** Answers a form. `show`: the form as it was sent, with what a person can correct, at 422. */
export async function orRefusal(
  visit: Visit,
  work: () => Promise<Response>,
  show: (problem: string) => Response | Promise<Response>,
): Promise<Response> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof NotFoundError) return notFoundPage();
    if (error instanceof UserError) return show(error.message);
    if (error instanceof TooManyAttemptsError) return limited(visit, error);
    throw error;
  }
}

/** Answers a script of our pages with the options for a passkey, or with the problem. */
export async function orProblem(
  visit: Visit,
  readOptions: () => Promise<object>,
): Promise<Response> {
  try {
    return json({ options: await readOptions() });
  } catch (error) {
    if (error instanceof UserError) return json({ problem: error.message }, 422);
    if (!(error instanceof TooManyAttemptsError)) throw error;
    return json({ problem: tooManyAttempts(error, visit) }, 429);
  }
}

/** RFC 6585, 4. */
function limited(visit: Visit, error: TooManyAttemptsError): Response {
  const response = page(<LimitedPage visit={visit} problem={tooManyAttempts(error, visit)} />, 429);
  // Whole seconds, never too few.
  const retryAfterS = Math.max(1, Math.ceil((error.retryAt - visit.now) / 1_000));
  response.headers.set("Retry-After", String(retryAfterS));
  return response;
}

function tooManyAttempts({ retryAt }: TooManyAttemptsError, { now }: Visit): string {
  const minutes = Math.max(1, Math.ceil((retryAt - now) / 60_000));
  return `Too many attempts. Try again in ${minutes === 1 ? "1 minute" : `${minutes} minutes`}.`;
}

/** The answers to forms that are refused. */
import { NotFoundError, UserError } from "../../domain/errors.ts";
import { describeLimit, isRateLimited, notFoundPage } from "./problems.tsx";
import { json } from "./responses.ts";

/** Answers a form. `show`: the form as it was sent, with what a person can correct, at 422. */
export async function orRefusal(
  work: () => Promise<Response>,
  show: (problem: string) => Response | Promise<Response>,
): Promise<Response> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof NotFoundError) return notFoundPage();
    if (error instanceof UserError) return show(error.sentence);
    throw error;
  }
}

/** Answers a script of our pages with the options for a passkey, or with the problem. */
export async function orProblem(readOptions: () => Promise<object>): Promise<Response> {
  try {
    return json({ options: await readOptions() });
  } catch (error) {
    if (error instanceof UserError) return json({ problem: error.sentence }, 422);
    if (isRateLimited(error)) return json({ problem: describeLimit(error) }, 429);
    throw error;
  }
}

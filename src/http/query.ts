/** Bounds what the parameters of a query or a form cost. */
import { AppError } from "../domain/errors.ts";

/** More than any page or reader sends. */
const PARAMETERS_MAX = 100;

/** Throws `bad_request` for too many parameters, before they are read. `text`: with them in it. */
export function requireFewParameters(text: string): void {
  if (text.split("&", PARAMETERS_MAX + 1).length <= PARAMETERS_MAX) return;
  throw new AppError("bad_request", {
    message: `The query has more than ${PARAMETERS_MAX} parameters.`,
  });
}

/** The parameters of `GET /feed`. */
import { AppError, type FieldReasons, noReasons } from "../domain/errors.ts";
import { isUlid } from "../domain/signal/id.ts";
import { nearest } from "../lib/text/nearest.ts";
import { requireFewParameters } from "../http/query.ts";

export const LIMIT_DEFAULT = 500;
export const LIMIT_MAX = 1_000;
export const WAIT_S_MAX = 60;
/** In `after`: the newest signal's id. */
export const NOW = "now";

export interface FeedQuery {
  /** A desk's name; null: all that the key may read. */
  readonly desk: string | null;
  /** Null: from the beginning. */
  readonly after: string | null;
  readonly limit: number;
  readonly waitMs: number;
}

/** Returns the reason to refuse a value, or null. */
const checks = {
  desk: (text: string) => (text === "" ? "must be the name of a desk" : null),
  after: (text: string) =>
    text === NOW || isUlid(text.toUpperCase()) ? null : `must be the id of a signal, or ${NOW}`,
  limit: (text: string) => wholeNumber(text, 1, LIMIT_MAX),
  wait: (text: string) => wholeNumber(text, 0, WAIT_S_MAX),
} as const;

const names = Object.keys(checks);

/** `search`: what follows the `?`. Throws `bad_request`, or `validation_failed` with all reasons. */
export function readFeedQuery(search: string): FeedQuery {
  requireFewParameters(search);
  const parameters = new URLSearchParams(search);
  const reasons: FieldReasons = noReasons();
  for (const [name, text] of parameters) {
    const reason = reasonAgainst(name, text, parameters.getAll(name).length);
    if (reason !== null) reasons[name] = reason;
  }
  if (Object.keys(reasons).length > 0) throw invalid(reasons);
  const after = parameters.get("after");
  return {
    desk: parameters.get("desk"),
    after: after === NOW ? after : (after?.toUpperCase() ?? null),
    limit: Number(parameters.get("limit") ?? LIMIT_DEFAULT),
    waitMs: Number(parameters.get("wait") ?? 0) * 1_000,
  };
}

export function invalid(fields: FieldReasons): AppError {
  return new AppError("validation_failed", { fields });
}

function reasonAgainst(name: string, text: string, times: number): string | null {
  if (!isKnown(name)) {
    const meant = nearest(name, names);
    return meant === null
      ? `unknown parameter; the feed takes ${names.join(", ")}`
      : `unknown parameter; did you mean ${meant}?`;
  }
  return times > 1 ? "must be given once" : checks[name](text);
}

function isKnown(name: string): name is keyof typeof checks {
  return Object.hasOwn(checks, name);
}

function wholeNumber(text: string, min: number, max: number): string | null {
  const isInRange = /^\d{1,4}$/.test(text) && Number(text) >= min && Number(text) <= max;
  return isInRange ? null : `must be a whole number from ${min} to ${max}`;
}

/** Classifies what PostgreSQL and the way to it answer. Codes: https://www.postgresql.org/docs/15/errcodes-appendix.html */
import postgres from "postgres";
import { messageOf } from "../../lib/errors.ts";
import type { Refusal } from "../records/queue.ts";

/** Two changes were in each other's way: it is repeated. */
export function isConflict(error: unknown): boolean {
  return hasCode(error, /^(40001|40P01)$/);
}

/** No statement was sent, or it was refused as a whole: nothing was stored. */
export function isRefusal(error: unknown): boolean {
  if (error instanceof postgres.PostgresError || error instanceof NoPrimaryError) {
    return hasCode(error, /^(53|57P0[123]|25006|55P03|08|28|3D000|42501|42P01)/);
  }
  // Such as ECONNREFUSED, or EINVAL of a route that leads nowhere.
  return (
    isUntrusted(error) ||
    (!isUnknown(error) && hasCode(error, /^(E[A-Z]+|EAI_AGAIN|CONNECT_TIMEOUT)$/))
  );
}

/** No host of the URL can be used as the primary now. Has PostgreSQL's code for a write on a standby. */
export class NoPrimaryError extends Error {
  readonly code = "25006";
}

/** The server's certificate is. */
export function isUntrusted(error: unknown): boolean {
  return hasCode(error, /CERT|^UNABLE_TO_VERIFY/);
}

/** The connection is gone, or leads to a server that is stopping or is not the primary any more. */
export function isBroken(error: unknown): boolean {
  if (error instanceof postgres.PostgresError) return hasCode(error, /^(57P|25006)/);
  return hasCode(error, /^(CONNECT|E[A-Z]+|ERR_S)/);
}

/** A value or row was refused, so others can be stored without it. */
export function isAboutOneRow(error: unknown): boolean {
  return hasCode(error, /^(22|23)/);
}

/** The database is away, full or in recovery: it is safe to try again later. */
export function isTransient(error: unknown): boolean {
  return isRefusal(error) || isUnknown(error) || isConflict(error);
}

/** The statement may or may not have been committed. */
export function isUnknown(error: unknown): boolean {
  return (
    hasCode(error, /^(40003|57014)$/) ||
    (!(error instanceof postgres.PostgresError) &&
      hasCode(error, /^(CONNECTION_|ECONNRESET|EPIPE|ETIMEDOUT|ERR_S)/))
  );
}

/** The first that fits. */
const reasons: readonly (readonly [RegExp, string])[] = [
  [/^53300$/, "too many connections to the database: raise max_connections, or the user's limit"],
  [/^53/, "the database server is out of space, memory or connections"],
  [/^25006$/, "the database is read-only or a standby"],
  [/^55P03$/, "another session holds a lock on the tables"],
  [/^57014$/, "a statement was cancelled"],
  [/^42501$/, "the user of the database may not write"],
  [/^42P01$/, "the database is empty: create a desk, or restart"],
  [/^3D000$/, "there is no such database any more"],
  [/^28/, "the database refuses the user or password"],
];

export function explain(error: unknown): string {
  if (isUntrusted(error)) return "the certificate of the database server is not trusted";
  if (error instanceof NoPrimaryError) return error.message;
  const [, reason] = reasons.find(([code]) => hasCode(error, code)) ?? [];
  return reason ?? "the database does not answer";
}

export function refusalOf(error: unknown): Refusal {
  return {
    kind: "unavailable",
    reason: explain(error),
    error: describeFailure(error),
    obstacle: hasCode(error, /^53100$/) ? "disk" : "database",
  };
}

/** For the operator's log: PostgreSQL's messages of these kinds name tables and columns, never values. */
export function describeFailure(error: unknown): string {
  const code = codeOf(error);
  return code === "" ? messageOf(error) : `${code}: ${messageOf(error)}`;
}

export function hasCode(error: unknown, pattern: RegExp): boolean {
  return pattern.test(codeOf(error));
}

function codeOf(error: unknown): string {
  if (typeof error !== "object" || error === null || !("code" in error)) return "";
  return String(error.code);
}

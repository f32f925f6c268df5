/**
 * The catalogue of answers that are not a stored signal: one row a code. `SPEC.md` section 7 names
 * the first four; the others are named in `openapi.yaml` and the README. The HTTP layer maps a row
 * to a response in one place (`api/responses.ts`), and `openapi.yaml` is made from the same rows.
 */
export const errorCatalogue = {
  bad_request: { status: 400, message: "The body is not valid JSON." },
  unauthorized: {
    status: 401,
    message: "The API key is not valid: it is unknown, revoked or expired.",
  },
  validation_failed: { status: 422, message: null },
  internal_error: { status: 500, message: null },
  https_required: {
    status: 403,
    message: "Requests must be made over HTTPS; send this request to the https:// address.",
  },
  not_found: {
    status: 404,
    message: "There is nothing at this path; signals go to POST /v1/signals.",
  },
  method_not_allowed: {
    status: 405,
    message: "This path does not take this method; the Allow header names the one that it takes.",
  },
  payload_too_large: { status: 413, message: "The body is larger than 65536 bytes." },
  unsupported_media_type: {
    status: 415,
    message: "Send the body as Content-Type: application/json, in UTF-8, without Content-Encoding.",
  },
  rate_limited: {
    status: 429,
    message: "The desk sends faster than its rate limit; retry after the seconds in Retry-After.",
  },
  unavailable: {
    status: 503,
    message:
      "The signal could not be stored now, or its outcome is unknown; retry with the same client_signal_id.",
  },
} as const satisfies Record<string, { status: number; message: string | null }>;

export type ErrorCode = keyof typeof errorCatalogue;

/** Invalid field name → reason (`SPEC.md` 2.3). Made by {@link noReasons}: names come from clients. */
export type FieldReasons = Record<string, string>;

/** The reason for a field whose name the client made up. */
export const UNKNOWN_FIELD = "unknown field";
/** The reason for a field that is not there. */
export const REQUIRED_FIELD = "required";

/** Without a prototype, so that a member called `__proto__` is a name like any other. */
export function noReasons(): FieldReasons {
  return Object.create(null) as FieldReasons;
}

export interface AppErrorDetail {
  /** Replaces the catalogue's message. Must not carry anything secret or internal. */
  readonly message?: string;
  /** For `validation_failed` only. */
  readonly fields?: FieldReasons;
  /** Sent as `Retry-After`: whole seconds, at least 1. */
  readonly retryAfterS?: number;
  /** Sent as `Allow`, for `method_not_allowed`. */
  readonly allow?: string;
}

/**
 * A failure with a documented answer. Anything else that is thrown becomes `internal_error`.
 *
 * It is an `Error` without a stack trace, which nobody would read: a refused request is no defect. To
 * take one, as the constructor of `Error` does, is a tenth of what a 401 costs.
 */
export class AppError implements Error {
  readonly name = "AppError";
  readonly message: string;
  readonly code: ErrorCode;
  readonly detail: AppErrorDetail;

  constructor(code: ErrorCode, detail: AppErrorDetail = {}) {
    this.message = detail.message ?? errorCatalogue[code].message ?? code;
    this.code = code;
    this.detail = detail;
  }
}
Object.setPrototypeOf(AppError.prototype, Error.prototype);

/**
 * A mistake that a person can put right. The message is one sentence that says what is wrong and what
 * to do about it; it is printed without a stack trace.
 */
export class UserError extends Error {
  /** The command that helps, such as `desk list`. The command line prints it after the message. */
  readonly next: string | null;

  constructor(message: string, next: string | null = null) {
    super(message);
    this.next = next;
  }
}

/** A {@link UserError}: what was named is not there, or is not there for who asks. */
export class NotFoundError extends UserError {}

/** A {@link UserError} in how the command was typed: exit code 2. */
export class UsageError extends UserError {}

/** What anything that was thrown says of itself. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** The code of a system's error, such as `EACCES`; what it says of itself where it has none. */
export function systemCode(error: unknown): string {
  return error instanceof Error && "code" in error ? String(error.code) : messageOf(error);
}

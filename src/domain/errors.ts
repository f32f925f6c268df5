/**
 * The error answers, one row per code. `SPEC.md` section 7 defines the first four. A null message means
 * that the body has none.
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
    message: "This path does not exist; signals go to POST /v1/signals.",
  },
  method_not_allowed: {
    status: 405,
    message: "This path does not take this method.",
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

/** The reason for a field that the interface does not have. */
export const UNKNOWN_FIELD = "unknown field";
/** The reason for a missing field. */
export const REQUIRED_FIELD = "required";

/** Has no prototype, so that `__proto__` is a name like any other. */
export function noReasons(): FieldReasons {
  return Object.create(null) as FieldReasons;
}

interface AppErrorDetail {
  /** Replaces the catalogue's message. Must not contain anything secret or internal. */
  readonly message?: string;
  /** For `validation_failed` only. */
  readonly fields?: FieldReasons;
  /** Sent as `Retry-After`: whole seconds, at least 1. */
  readonly retryAfterS?: number;
  /** Sent as `Allow`, for `method_not_allowed`. */
  readonly allow?: string;
}

/** A failure with a documented answer. Anything else that is thrown becomes `internal_error`. */
export class AppError extends Error {
  readonly code: ErrorCode;
  readonly detail: AppErrorDetail;

  constructor(code: ErrorCode, detail: AppErrorDetail = {}) {
    super(detail.message ?? errorCatalogue[code].message ?? code);
    this.code = code;
    this.detail = detail;
  }
}

/**
 * A mistake that a person can fix. The message says what is wrong and what to do about it, and is printed
 * without a stack trace.
 */
export class UserError extends Error {
  /** A command that helps, such as `desk list`. The command line prints it after the message. */
  readonly next: string | null;

  constructor(message: string, next: string | null = null) {
    super(message);
    this.next = next;
  }

  /** The message where no command follows it, as in the console. */
  get sentence(): string {
    return this.next === null ? this.message : `${this.message}.`;
  }
}

/** What was named does not exist, or not for the one who asks. */
export class NotFoundError extends UserError {}

/** The member was signed out between the start of the request and its change, which was not made. */
export class SignedOutError extends Error {}

/** A mistake in how the command was typed: exit code 2. */
export class UsageError extends UserError {}

/** Returns the message of anything that was thrown. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** Returns the code of a system error, such as `EACCES`, or the message of an error without one. */
export function systemCode(error: unknown): string {
  return error instanceof Error && "code" in error ? String(error.code) : messageOf(error);
}

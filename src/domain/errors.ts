/**
 * The error answers, one row per code. `SPEC.md` section 7 defines the first four. A null message means
 * that the body has none.
 */
export const errorCatalogue = {
  bad_request: { status: 400, message: "The body is not valid JSON." },
  unauthorized: {
    status: 401,
    message:
      "The API key is not valid here: it is unknown, revoked, expired, or limited to other networks.",
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
  damaged_signal: {
    status: 409,
    message:
      "The signal that was stored with this client_signal_id is damaged on the server's disk; its administrator can restore a backup.",
  },
} as const satisfies Record<string, { status: number; message: string | null }>;

export type ErrorCode = keyof typeof errorCatalogue;

/** Why a client was refused, as its desk sees it. `foreign_network`: the key was used from outside its networks. */
export type SeenCode = ErrorCode | "foreign_network";

/** What the client was told. */
export function answeredCode(code: SeenCode): ErrorCode {
  return code === "foreign_network" ? "unauthorized" : code;
}

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
  /** How many more unknown fields there are than `fields` lists. */
  readonly unlistedFields?: number;
  /** Of a body that was read, for its desk. Not in the answer. */
  readonly clientSignalId?: string;
  /** Sent as `Retry-After`: whole seconds, at least 1. */
  readonly retryAfterS?: number;
  /** Sent as `Allow`, for `method_not_allowed`. */
  readonly allow?: string;
  /** For `damaged_signal` only. */
  readonly signalId?: string;
  /** For the log and the desk alone, instead of the code and the message. */
  readonly untold?: { readonly code: SeenCode; readonly message: string };
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

  /** As the log and the desk see it. */
  get seenCode(): SeenCode {
    return this.detail.untold?.code ?? this.code;
  }
}

/**
 * The recent requests with a desk's keys, counted by outcome, and the rejected ones in detail: for the
 * people who write its bots. Not an audit: a crash may lose a second, and old data is dropped.
 */
import type { AppError, ErrorCode, FieldReasons } from "./errors.ts";
import type { Appended, Identity } from "./storage.ts";

/** Rejected requests kept per desk, newest first. */
export const REJECTS_KEPT = 1_000;
/** Signals with duplicates kept per desk, newest first. */
export const REPEATED_SIGNALS_KEPT = 10_000;
/** Invalid fields kept per rejected request. */
export const REJECT_FIELDS_MAX = 10;

/** The width of a bucket and how many are kept. Days are in UTC. */
export const activityWidths = {
  minute: { ms: 60_000, kept: 180 },
  hour: { ms: 3_600_000, kept: 168 },
  day: { ms: 86_400_000, kept: 90 },
} as const;

export type ActivityWidth = keyof typeof activityWidths;

/** Returns the start of the bucket that contains `at`; epoch milliseconds. */
export function startOfBucket(at: number, widthMs: number): number {
  return at - (at % widthMs);
}

/** Is told of each request with a known key, also a revoked or expired one. */
export interface ActivityObserver {
  /** `at`: epoch milliseconds. */
  accepted(owner: Identity, at: number, appended: Appended): void;
  /** `error`: null for a defect of ours, which is not described. */
  rejected(owner: Identity, at: number, requestId: string, error: AppError | null): void;
}

/** Numbers of requests. */
export interface Outcomes {
  readonly stored: number;
  readonly duplicate: number;
  readonly rejected: number;
}

/** The requests of one key in one minute. */
export interface KeyMinute extends Outcomes {
  readonly deskId: number;
  readonly keyId: string;
  /** Epoch milliseconds. */
  readonly start: number;
  /** How many were rejected because the key was revoked or had expired. */
  readonly unauthorized: number;
  /** The newest request; epoch milliseconds. */
  readonly lastAt: number;
}

export interface Reject {
  readonly request_id: string;
  readonly key_id: string;
  /** Epoch milliseconds. */
  readonly at: number;
  readonly status: number;
  readonly error: ErrorCode;
  /** As in the answer; null if it had none. */
  readonly message: string | null;
  /** As in the answer, up to {@link REJECT_FIELDS_MAX}; null if it had none. */
  readonly fields: FieldReasons | null;
  /** How many more invalid fields the answer had. */
  readonly moreFields: number;
}

/** The duplicates of one signal. */
export interface Repeats {
  readonly duplicates: number;
  /** How many differed from the original. */
  readonly differing: number;
  /** The fields in which they differed. */
  readonly differs: readonly string[];
  /** The newest duplicate; epoch milliseconds. */
  readonly lastAt: number;
}

/** What was observed since the previous batch. */
export interface ActivityBatch {
  readonly minutes: readonly KeyMinute[];
  readonly rejects: readonly (Reject & { readonly deskId: number })[];
  readonly repeats: readonly (Repeats & { readonly deskId: number; readonly signalId: string })[];
}

/** `keyId`: only this key's activity; null: the whole desk's. */
export interface ActivityOwner {
  readonly deskId: number;
  readonly keyId: string | null;
}

export interface Bucket extends Outcomes {
  /** Epoch milliseconds. */
  readonly start: number;
}

/** How one key was used. */
export interface KeyActivity {
  readonly requests: number;
  readonly rejected: number;
  /** As in {@link KeyMinute}. */
  readonly unauthorized: number;
  /** Epoch milliseconds. */
  readonly lastAt: number;
}

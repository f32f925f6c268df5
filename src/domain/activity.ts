/**
 * What became of the requests with a desk's keys, counted and, where they were rejected, told: for the
 * people who write its bots. It is no record: a crash may lose a second of it, and old parts are dropped.
 */
import type { AppError, ErrorCode, FieldReasons } from "./errors.ts";
import type { Appended, Identity } from "./storage.ts";

/** So many of the newest are kept of each desk. */
export const REJECTS_KEPT = 1_000;
/** Of those that had duplicates, so many of the newest are kept of each desk. */
export const REPEATED_SIGNALS_KEPT = 10_000;
/** Of one rejected request. */
export const REJECT_FIELDS_MAX = 10;

/** How wide a bucket is, and how many of them are kept. Days are days of UTC. */
export const activityWidths = {
  minute: { ms: 60_000, kept: 180 },
  hour: { ms: 3_600_000, kept: 168 },
  day: { ms: 86_400_000, kept: 90 },
} as const;

export type ActivityWidth = keyof typeof activityWidths;

/** Of the bucket that a moment is in; epoch milliseconds. */
export function startOfBucket(at: number, widthMs: number): number {
  return at - (at % widthMs);
}

/** Hears of each request whose key is known, also of one that has been revoked or has expired. */
export interface ActivityObserver {
  /** `at`: epoch milliseconds. */
  accepted(owner: Identity, at: number, appended: Appended): void;
  /** `error`: null for a defect of ours, of which nothing is told. */
  rejected(owner: Identity, at: number, requestId: string, error: AppError | null): void;
}

/** Requests by what became of them. */
export interface Outcomes {
  readonly stored: number;
  readonly duplicate: number;
  readonly rejected: number;
}

/** Those of one key in one minute. */
export interface KeyMinute extends Outcomes {
  readonly deskId: number;
  readonly keyId: string;
  /** Epoch milliseconds of its start. */
  readonly start: number;
  /** How many of the rejected ones had a key that does not authenticate any more. */
  readonly unauthorized: number;
  /** The newest of them. */
  readonly lastAt: number;
}

export interface Reject {
  readonly request_id: string;
  readonly key_id: string;
  /** Epoch milliseconds. */
  readonly at: number;
  readonly status: number;
  readonly error: ErrorCode;
  /** As answered; null for an answer that has none. */
  readonly message: string | null;
  /** As answered, but for no more than {@link REJECT_FIELDS_MAX}; null for an answer that has none. */
  readonly fields: FieldReasons | null;
  /** How many invalid fields there were beside these. */
  readonly moreFields: number;
}

/** Duplicates of one signal. */
export interface Repeats {
  readonly duplicates: number;
  /** How many of them had another content. */
  readonly differing: number;
  /** In which fields. */
  readonly differs: readonly string[];
  /** The newest of them; epoch milliseconds. */
  readonly lastAt: number;
}

/** What was observed since the batch before. */
export interface ActivityBatch {
  readonly minutes: readonly KeyMinute[];
  readonly rejects: readonly (Reject & { readonly deskId: number })[];
  readonly repeats: readonly (Repeats & { readonly deskId: number; readonly signalId: string })[];
}

/** Whose activity. `keyId`: of this key alone; null: of all the desk's. */
export interface ActivityOwner {
  readonly deskId: number;
  readonly keyId: string | null;
}

export interface Bucket extends Outcomes {
  /** Epoch milliseconds. */
  readonly start: number;
}

/** What one key was used for. */
export interface KeyActivity {
  readonly requests: number;
  readonly rejected: number;
  /** As in {@link KeyMinute}. */
  readonly unauthorized: number;
  /** Epoch milliseconds. */
  readonly lastAt: number;
}

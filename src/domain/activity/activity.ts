/**
 * The recent requests with a desk's keys, counted by outcome, and the rejected ones in detail: for the
 * people who write its bots. Not an audit: a crash may lose a second, and old data is dropped. Times are epoch
 * milliseconds.
 */
import type { AppError } from "../errors.ts";
import type { Signal } from "../signal/signal.ts";
import type { Appended, Identity } from "../storage/append.ts";
import type { DifferingValues, RejectAnswer, RejectedBody, SentReject } from "./sent.ts";

/** Rejected requests are described per key and reason. The least recent are dropped: names of unknown fields are a client's own words. */
export const REJECT_REASONS_KEPT = 300;
/** Of them, kept per key: one key that makes up names pushes out no other key's reasons. */
export const REJECT_REASONS_PER_KEY_KEPT = 50;
/** The latest requests kept per key and reason, beside the first one: a flood of one reason pushes out no other. */
export const REQUESTS_PER_REASON_KEPT = 20;
/** Signals with duplicates kept per desk, each with each key counted as one: the latest signals, and those that differed last. */
export const DIFFERING_KEPT = 1_000;
export const REPEATS_KEPT = 10_000;

/** The width of a bucket and how many are kept. Days are in UTC. */
export const activityWidths = {
  minute: { ms: 60_000, kept: 180 },
  hour: { ms: 3_600_000, kept: 168 },
  day: { ms: 86_400_000, kept: 90 },
} as const;

export type ActivityWidth = keyof typeof activityWidths;

/** Returns the start of the bucket that contains `at`. */
export function startOfBucket(at: number, widthMs: number): number {
  return at - (at % widthMs);
}

/** A signal that was answered with 201 or 200. */
export interface Acceptance {
  readonly requestId: string;
  readonly receivedAt: number;
  readonly signal: Signal;
  readonly appended: Appended;
  /** From the request's headers to the commit. */
  readonly durationMs: number;
}

/** What a refused request was, as far as it was read. */
export interface Refused {
  readonly headers: Headers;
  /** Null unless all of it was read. */
  readonly body: Uint8Array | null;
  /** The client's address; undefined when the connection is gone. */
  client(): string | undefined;
}

/** Is told of each request to store a signal, and of every other refusal, except for clients that went away. */
export interface RequestObserver {
  accepted(owner: Identity, acceptance: Acceptance): void;
  /**
   * `owner`: null without a known key; a key may be revoked or expired. `error`: null for a defect of ours, which is not described.
   */
  rejected(
    owner: Identity | null,
    at: number,
    requestId: string,
    error: AppError | null,
    refused: Refused,
  ): void;
}

export interface Outcomes {
  readonly stored: number;
  readonly duplicate: number;
  readonly rejected: number;
}

/** Requests are rejected for the same reason if they have the same status, error and fields. */
export type RejectReason = Omit<RejectAnswer, "message">;

/** Equal for equal reasons, in whatever order their fields are. Most rejects of a flood have none. */
export function textOfReason({ status, error, fields, moreFields }: RejectReason): string {
  if (fields === null) return error;
  const entries = Object.entries(fields).toSorted(([one], [other]) => (one < other ? -1 : 1));
  return JSON.stringify([status, error, entries, moreFields]);
}

export interface RejectedRequest {
  /** A UUIDv7: rises with time. */
  readonly request_id: string;
  readonly key_id: string;
  readonly at: number;
  /** As in the answer; null if it had none. */
  readonly message: string | null;
}

/** What it sent; null: that is not kept. */
export interface RejectedWithBody extends RejectedRequest {
  readonly client_signal_id: SentReject["client_signal_id"];
  readonly body: SentReject["body"] | null;
  readonly body_bytes: SentReject["body_bytes"] | null;
}

/** The requests of one key and minute that were rejected for one reason. */
export interface KeyRejects {
  readonly reason: RejectReason;
  readonly count: number;
  /** The latest of them, up to {@link REQUESTS_PER_REASON_KEPT}, in any order. */
  readonly latest: readonly Omit<RejectedRequest, "key_id">[];
}

/** The requests of one key in one minute. */
export interface KeyMinute extends Outcomes {
  readonly deskId: number;
  readonly keyId: string;
  readonly start: number;
  /** How many were rejected because the key was revoked, had expired, or was of an archived desk. */
  readonly unauthorized: number;
  /** The newest request. */
  readonly lastAt: number;
  /** By {@link textOfReason}; up to {@link REJECT_REASONS_PER_KEY_KEPT}. */
  readonly rejects: ReadonlyMap<string, KeyRejects>;
}

export interface Repeats {
  readonly duplicates: number;
  /** How many differed from the signal. */
  readonly differing: number;
  /** The fields in which they differed. */
  readonly differs: readonly string[];
  /** The newest duplicate. */
  readonly lastAt: number;
  /** The newest that differed; 0: none did. */
  readonly differedAt: number;
}

/** The duplicates of one signal that were sent with one key. */
export interface KeyRepeats extends Repeats {
  readonly signalId: string;
  readonly keyId: string;
}

/** What was observed since the previous batch. */
export interface ActivityBatch {
  readonly minutes: readonly KeyMinute[];
  readonly repeats: readonly (KeyRepeats & { readonly deskId: number })[];
  readonly bodies: readonly RejectedBody[];
  readonly values: readonly DifferingValues[];
}

/** The buckets that start with the one that contains `from`. */
export interface BucketSpan {
  readonly width: ActivityWidth;
  readonly from: number;
}

/** Which buckets to read: those of the span with anything in them. */
export interface BucketQuery extends BucketSpan {
  readonly deskId: number;
  /** Those of each of these keys; null: those of the whole desk. */
  readonly keyIds: readonly string[] | null;
}

export interface Bucket extends Outcomes {
  readonly start: number;
}

export interface DeskBucket extends Bucket {
  readonly deskId: number;
}

/** `unauthorized` and `lastAt` as in {@link KeyMinute}. `keyId`: null: of the whole desk. */
export interface CountedBucket extends Bucket, Pick<KeyMinute, "unauthorized" | "lastAt"> {
  readonly keyId: string | null;
}

/** Which reasons to read: those of a desk, narrowed by each property that is not null. */
export interface RejectQuery {
  readonly deskId: number;
  readonly keyId?: string | null;
  readonly status?: number | null;
  /** The answer named this field. */
  readonly field?: string | null;
  /** The id of one reason. */
  readonly reason?: string | null;
  /** Counts the requests of these buckets. Reasons without any are left out. */
  readonly since: BucketSpan;
  /** Only reasons whose latest request has a lower id. */
  readonly before?: string | null;
  readonly limit: number;
}

/** The requests of a desk that were rejected for one reason. */
export interface Rejects extends RejectReason {
  /** Names the reason: the same for every key. */
  readonly id: string;
  readonly count: number;
  readonly firstAt: number;
  readonly lastAt: number;
  /** The id of the latest request. */
  readonly latestId: string;
  /** The keys that they were sent with, the latest first. */
  readonly keyIds: readonly string[];
}

/** Which duplicates that differ to read: those before this one, the latest first. */
export interface DifferingQuery {
  readonly deskId: number;
  readonly before: Pick<KeyRepeats, "differedAt" | "signalId" | "keyId"> | null;
  readonly limit: number;
}

/** Duplicates that differed from their signal, of all signals together. */
export interface DifferingTotal {
  readonly count: number;
  readonly lastAt: number;
}

/** What was done with a desk's keys. */
import type {
  ActivityBatch,
  BucketQuery,
  BucketSpan,
  CountedBucket,
  DeskBucket,
  DifferingQuery,
  DifferingTotal,
  KeyRepeats,
  RejectedWithBody,
  RejectQuery,
  Rejects,
  Repeats,
} from "../activity/activity.ts";
import type { SentDuplicate, SentReject } from "../activity/sent.ts";
import type { Awaitable } from "./awaitable.ts";

/** What was done with a desk's keys, except in the last second or two. */
export interface Activity {
  /**
   * Keeps in memory what the disk refuses, shows it like the rest, and writes it down with a later batch, which
   * may be empty. Returns the reason for people, or null. Throws for a batch that cannot be recorded.
   */
  write(batch: ActivityBatch): Awaitable<string | null>;
  /** Oldest first. */
  buckets(query: BucketQuery): Awaitable<CountedBucket[]>;
  /** The buckets of each of these desks, oldest first. */
  bucketsOfDesks(deskIds: readonly number[], span: BucketSpan): Awaitable<DeskBucket[]>;
  /**
   * Ids of keys that got 401 because they have ended, latest request first; in the hours starting with the one that
   * contains `from`. `deskId` null: of all desks.
   */
  keysStillInUse(deskId: number | null, from: number, limit: number): Awaitable<string[]>;
  /** By reason, the one with the latest request first. */
  rejects(query: RejectQuery): Awaitable<Rejects[]>;
  /** The latest requests that were rejected for one reason, newest first; `keyId`: null: with any key. */
  rejected(
    reason: { readonly deskId: number; readonly reason: string; readonly keyId: string | null },
    limit: number,
  ): Awaitable<RejectedWithBody[]>;
  /** The rejected requests whose content is kept, newest first; `deskId`: null: of all desks. */
  sentRejects(deskId: number | null, limit: number): Awaitable<SentReject[]>;
  /** Returns null if no duplicate is known. */
  repeatsOf(deskId: number, signalId: string): Awaitable<Repeats | null>;
  /** The latest first. */
  differing(query: DifferingQuery): Awaitable<KeyRepeats[]>;
  /** The ids of signals with duplicates that differ, in any order. */
  differingIds(deskId: number): Awaitable<string[]>;
  /** The duplicates of a signal that differ and whose content is kept, newest first. */
  sentDuplicates(deskId: number, signalId: string): Awaitable<SentDuplicate[]>;
  /** Deletes what requests sent. What is written later is left out while the desk keeps nothing: see `Desks.keepSent`. */
  forgetSent(deskId: number): Awaitable<void>;
  /** Of the signals whose latest one came since `from`; null if there is none. */
  differingTotal(deskId: number, from: number): Awaitable<DifferingTotal | null>;
}

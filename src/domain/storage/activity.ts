/** What was done with a desk's keys. */
import type {
  ActivityBatch,
  ActivityOwner,
  ActivityWidth,
  Bucket,
  Differing,
  DifferingQuery,
  DifferingTotal,
  KeyActivity,
  RejectQuery,
  Rejects,
  Repeats,
} from "../activity/activity.ts";
import type { Awaitable } from "./awaitable.ts";

/** What was done with a desk's keys, except in the last second or two. */
export interface Activity {
  /**
   * Keeps in memory what the disk refuses, shows it like the rest, and writes it down with a later batch, which
   * may be empty. Returns the reason for people, or null. Throws for a batch that cannot be recorded.
   */
  write(batch: ActivityBatch): Awaitable<string | null>;
  /** Those with anything in them, oldest first, starting with the one that contains `from`. */
  buckets(owner: ActivityOwner, width: ActivityWidth, from: number): Awaitable<Bucket[]>;
  /** {@link buckets} of several keys, by the key's id. */
  bucketsOfKeys(
    deskId: number,
    keyIds: readonly string[],
    width: ActivityWidth,
    from: number,
  ): Awaitable<ReadonlyMap<string, readonly Bucket[]>>;
  /** By the key's id; in the hours starting with the one that contains `from`. */
  ofKeys(
    deskId: number,
    keyIds: readonly string[],
    from: number,
  ): Awaitable<ReadonlyMap<string, KeyActivity>>;
  /** Ids of keys that got 401 because they have ended, latest request first; in the same hours. */
  keysStillInUse(deskId: number, from: number, limit: number): Awaitable<string[]>;
  /** By reason, the one with the latest request first. */
  rejects(query: RejectQuery): Awaitable<Rejects[]>;
  /** Returns null if no duplicate is known. */
  repeatsOf(deskId: number, signalId: string): Awaitable<Repeats | null>;
  /** The latest first. */
  differing(query: DifferingQuery): Awaitable<readonly Differing[]>;
  /** Of the signals whose latest one came since `from`; null if there is none. */
  differingTotal(deskId: number, from: number): Awaitable<DifferingTotal | null>;
}

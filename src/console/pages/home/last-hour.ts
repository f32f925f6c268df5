/** What a desk sent in the last hour, and how many signals are usual at that time of day. */
import { type Bucket, type Outcomes, startOfBucket } from "../../../domain/activity/activity.ts";
import type { Activity } from "../../../domain/storage/activity.ts";
import { sumOf } from "../../ui/sparkline.tsx";
import { DAY_MS, HOUR_MS, MINUTE_MS } from "../../../lib/text/time.ts";

/** The earlier days of which every hour is kept. */
const DAYS = 6;

/** In this minute and the 59 before it. */
export interface LastHour extends Outcomes {
  /** Signals: the average of the same hour on the earlier days, up to six; null: the desk sent nothing before today. */
  readonly usual: number | null;
  /** In this minute and the {@link LATELY_MINUTES} - 1 before it. */
  readonly lately: Outcomes;
}

export const LATELY_MINUTES = 10;

export async function readLastHour(
  activity: Activity,
  deskId: number,
  now: number,
): Promise<LastHour> {
  const desk = { deskId, keyIds: null };
  const minutes = await activity.buckets({
    ...desk,
    width: "minute",
    from: now - HOUR_MS + MINUTE_MS,
  });
  const hours = await activity.buckets({
    ...desk,
    width: "hour",
    from: now - HOUR_MS - DAYS * DAY_MS,
  });
  const from = latelyFrom(now);
  return {
    ...outcomesOf(minutes),
    usual: usualHour(hours, now),
    lately: outcomesOf(minutes.filter(({ start }) => start >= from)),
  };
}

export function latelyFrom(now: number): number {
  return startOfBucket(now, MINUTE_MS) - (LATELY_MINUTES - 1) * MINUTE_MS;
}

function outcomesOf(buckets: readonly Bucket[]): Outcomes {
  return {
    stored: sumOf(buckets, "stored"),
    duplicate: sumOf(buckets, "duplicate"),
    rejected: sumOf(buckets, "rejected"),
  };
}

/**
 * The last hour overlaps two hours of the clock: each counts for the part of it that the last hour covers.
 * Days before the desk's first signal do not count.
 */
export function usualHour(hours: readonly Bucket[], now: number): number | null {
  const covered = (now % HOUR_MS) / HOUR_MS;
  const present = now - (now % HOUR_MS);
  const storedIn = new Map(hours.map(({ start, stored }) => [start, stored]));
  const first = hours.find(({ stored }) => stored > 0)?.start ?? now;
  const rates = Array.from({ length: DAYS }, (_, index) => present - (index + 1) * DAY_MS)
    .filter((start) => start + HOUR_MS > first)
    .map(
      (start) =>
        (storedIn.get(start) ?? 0) * covered + (storedIn.get(start - HOUR_MS) ?? 0) * (1 - covered),
    );
  if (rates.length === 0) return null;
  return rates.reduce((sum, rate) => sum + rate, 0) / rates.length;
}

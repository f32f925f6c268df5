/** What a desk usually sends, and which share of its requests may be rejected. */
import { DAY_MS, HOUR_MS, MINUTE_MS } from "../../lib/text/time.ts";
import { type Bucket, type Outcomes, startOfBucket } from "./activity.ts";

/** The earlier days of which every hour is kept. */
const DAYS = 6;

export const LATELY_MINUTES = 10;
/** From this share of rejected requests on, the desk is told. */
const REJECTED_SHARE = 1 / 10;

/** Returns the start of the first of the last {@link LATELY_MINUTES}. */
export function latelyFrom(now: number): number {
  return startOfBucket(now, MINUTE_MS) - (LATELY_MINUTES - 1) * MINUTE_MS;
}

/** Returns the share of rejected requests, or null if it is so small that nobody is told. */
export function shareOfManyRejected({ stored, duplicate, rejected }: Outcomes): number | null {
  const share = rejected === 0 ? 0 : rejected / (stored + duplicate + rejected);
  return share >= REJECTED_SHARE ? share : null;
}

/** Signals in the hours of the clock that the last hour overlaps: averages of the earlier days, up to six. */
export interface Usual {
  /** In the hour under way. */
  readonly present: number;
  readonly before: number;
}

/** Returns the start of the hours that {@link usualOf} needs. They are the same for an hour of the clock. */
export function usualFrom(now: number): number {
  return startOfBucket(now, HOUR_MS) - HOUR_MS - DAYS * DAY_MS;
}

/** Days before the desk's first signal do not count; null: there are no others. `hours`: oldest first. */
export function usualOf(
  hours: readonly Pick<Bucket, "start" | "stored">[],
  now: number,
): Usual | null {
  const present = startOfBucket(now, HOUR_MS);
  const storedIn = new Map(hours.map(({ start, stored }) => [start, stored]));
  const first = hours.find(({ stored }) => stored > 0)?.start ?? now;
  const days = Array.from({ length: DAYS }, (_, index) => present - (index + 1) * DAY_MS).filter(
    (start) => start + HOUR_MS > first,
  );
  if (days.length === 0) return null;
  const average = (beforeMs: number): number =>
    days.reduce((sum, start) => sum + (storedIn.get(start - beforeMs) ?? 0), 0) / days.length;
  return { present: average(0), before: average(HOUR_MS) };
}

/** Signals in the last hour: each hour of the clock counts for the part of it that the last hour covers. */
export function usualRate({ present, before }: Usual, now: number): number {
  const covered = (now % HOUR_MS) / HOUR_MS;
  return present * covered + before * (1 - covered);
}

const about = new Intl.NumberFormat("en", { maximumSignificantDigits: 2 });

/** Such as "usually about 200 per hour". */
export function usually(rate: number): string {
  return rate < 1 ? "usually less than 1 per hour" : `usually about ${about.format(rate)} per hour`;
}

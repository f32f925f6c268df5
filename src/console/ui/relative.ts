/** Moments as people say them: "3 minutes ago", "in 24 hours". */

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;

/** Each unit up to so many of it, so that "in 24 hours" stays one, and 36 hours are not "1 day". */
const units = [
  { unit: "minute", ms: MINUTE_MS, countMax: 59 },
  { unit: "hour", ms: HOUR_MS, countMax: 47 },
  { unit: "day", ms: DAY_MS, countMax: 99 },
  { unit: "month", ms: (365.25 * DAY_MS) / 12, countMax: 23 },
  { unit: "year", ms: 365.25 * DAY_MS, countMax: Number.POSITIVE_INFINITY },
] as const;

const format = new Intl.RelativeTimeFormat("en", { numeric: "always" });

/** To the nearest unit; what is closer than a minute is not counted in seconds. */
export function relativeTime(at: number, now: number): string {
  const distance = Math.abs(at - now);
  if (distance < MINUTE_MS) {
    return at <= now ? "less than a minute ago" : "in less than a minute";
  }
  for (const { unit, ms, countMax } of units) {
    const count = Math.round(distance / ms);
    if (count <= countMax) return format.format(at < now ? -count : count, unit);
  }
  throw new Error("unreachable: years have no end");
}

/** Of something that has happened: another thread's clock may be read a moment after ours. */
export function timeAgo(at: number, now: number): string {
  return relativeTime(Math.min(at, now), now);
}

/** When the newest of so many things happened: "the last 3 minutes ago", but for a single one. */
export function newestAgo(count: number, at: number, now: number): string {
  const ago = timeAgo(at, now);
  return count === 1 ? ago : `the last ${ago}`;
}

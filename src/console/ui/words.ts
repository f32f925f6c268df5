/** Times, spans and long texts in words for people. */
import { DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS } from "../../domain/time.ts";

/** Each unit counts up to `countMax`, so that "in 24 hours" stays one, and 36 hours are not "1 day". */
const units = [
  { unit: "minute", ms: MINUTE_MS, countMax: 59 },
  { unit: "hour", ms: HOUR_MS, countMax: 47 },
  { unit: "day", ms: DAY_MS, countMax: 99 },
  { unit: "month", ms: (365.25 * DAY_MS) / 12, countMax: 23 },
  { unit: "year", ms: 365.25 * DAY_MS, countMax: Number.POSITIVE_INFINITY },
] as const;

const format = new Intl.RelativeTimeFormat("en", { numeric: "always" });

/** Such as "3 minutes ago" or "in 24 hours", to the nearest unit. */
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

/** For something that has happened: another thread's clock may be read a moment after ours. */
export function timeAgo(at: number, now: number): string {
  return relativeTime(Math.min(at, now), now);
}

/** Describes `received_at` minus `signal_time` in a sentence without its full stop. */
export function describeSkew(skewMs: number): string {
  if (skewMs === 0) return "Received in the same millisecond";
  const span = describeSpan(Math.abs(skewMs));
  if (skewMs < 0) {
    return `Received ${span} before the signal's own time: the bot's clock is ahead of the server's`;
  }
  // More than imprecise clocks and a slow network explain.
  const remark = skewMs > MINUTE_MS ? ": sent late, or the bot's clock is behind" : "";
  return `Received ${span} after the signal's own time${remark}`;
}

/** Such as "3 h 12 min" or "4 days". */
export function describeSpan(ms: number): string {
  if (ms < SECOND_MS) return `${ms} ms`;
  if (ms < MINUTE_MS) return `${Math.trunc(ms / 100) / 10} s`;
  if (ms < HOUR_MS) return two(ms, MINUTE_MS, "min", SECOND_MS, "s");
  if (ms < 2 * DAY_MS) return two(ms, HOUR_MS, "h", MINUTE_MS, "min");
  return `${Math.trunc(ms / DAY_MS).toLocaleString("en")} days`;
}

function two(ms: number, large: number, largeName: string, small: number, smallName: string) {
  const rest = Math.trunc((ms % large) / small);
  const first = `${Math.trunc(ms / large)} ${largeName}`;
  return rest === 0 ? first : `${first} ${rest} ${smallName}`;
}

const CHARACTERS_MAX = 60;
const TITLE_MAX = 75;

/** Shortens a text to so many code points, the last an ellipsis. */
export function shorten(text: string, max = CHARACTERS_MAX): string {
  // No text has more code points than UTF-16 units.
  if (text.length <= max) return text;
  const characters = Array.from(text);
  if (characters.length <= max) return text;
  return `${characters.slice(0, max - 1).join("")}…`;
}

/** The whole text of one that is shortened, unless it is too long for a page with many. */
export function titleOf(text: string): string | undefined {
  return shorten(text) !== text && text.length <= TITLE_MAX ? text : undefined;
}

const DIGITS_MAX = 12;

/** Whether a number may be broken in a table, where each column has to leave room for the others. */
export function isLongNumber(text: string): boolean {
  return text.length > DIGITS_MAX;
}

/** Keeps a text on one line. */
export function unbroken(text: string): string {
  return text.replaceAll(" ", "\u00a0");
}

/** When a desk that sends nothing is silent. */
import { UserError } from "../../lib/errors.ts";
import { DAY_MS, HOUR_MS, MINUTE_MS } from "../../lib/text/time.ts";
import { describeSpan } from "../../lib/text/words.ts";
import type { Usual } from "../activity/usual.ts";

/** Without a choice of the desk: an hour, and three times the usual interval. */
export const SILENCE_MS_MIN = HOUR_MS;
const INTERVALS_MAX = 3;

const SPAN_MS_MIN = MINUTE_MS;
const SPAN_MS_MAX = 31 * DAY_MS;

/** From Monday on. */
export const weekdays = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"] as const;
export type Weekday = (typeof weekdays)[number];

/** Hours of a time zone. */
export interface WatchedHours {
  readonly days: readonly Weekday[];
  /** Such as `09:30`. */
  readonly from: string;
  /** Not after `from`: on the next day. */
  readonly to: string;
  /** Such as `America/New_York`. */
  readonly zone: string;
}

/** What a desk chose. */
export interface SilenceRule {
  /** How long it may send nothing, milliseconds; null: by its usual interval. */
  readonly spanMs: number | null;
  /** Silence is counted in these hours alone; null: always. */
  readonly hours: WatchedHours | null;
}

export const SILENCE_DEFAULT: SilenceRule = { spanMs: null, hours: null };

/**
 * Returns for how long a desk may send nothing; null: it is not known. Of the two hours of the clock, the one with fewer
 * signals counts: a desk that usually begins at half past nine is not silent at five past nine.
 */
export function silenceAllowedMs({ spanMs }: SilenceRule, usual: Usual | null): number | null {
  if (spanMs !== null) return spanMs;
  const rate = usual === null ? 0 : Math.min(usual.present, usual.before);
  return rate === 0 ? null : Math.max(SILENCE_MS_MIN, (INTERVALS_MAX * HOUR_MS) / rate);
}

/** Whether a desk whose newest signal came at `newestAt` has been silent for too long. */
export function isSilent(
  newestAt: number,
  rule: SilenceRule,
  usual: Usual | null,
  now: number,
): boolean {
  const allowed = silenceAllowedMs(rule, usual);
  if (allowed === null) return false;
  const openedAt = rule.hours === null ? 0 : openSince(rule.hours, now);
  return openedAt !== null && now - Math.max(newestAt, openedAt) > allowed;
}

/**
 * Returns since when the hours have lasted, or null outside them. By the clock on the wall: on the day on which the
 * clocks change, it may be an hour off.
 */
export function openSince({ days, from, to, zone }: WatchedHours, now: number): number | null {
  const { weekday, minutes } = wallClock(now, zone);
  const [first, last] = [minutesOf(from), minutesOf(to)];
  const isOn = (back: number): boolean =>
    days.includes(weekdays.at((weekdays.indexOf(weekday) - back + 14) % 7) ?? "Mon");
  const length = (last - first + DAY_MINUTES) % DAY_MINUTES || DAY_MINUTES;
  for (const back of [0, 1]) {
    const open = minutes - first + back * DAY_MINUTES;
    if (!isOn(back) || open < 0 || open >= length) continue;
    // Days without a pause between them are one.
    const isWhole = length === DAY_MINUTES;
    const earlier = isWhole ? weekdays.findIndex((_, day) => !isOn(back + day + 1)) : 0;
    return now - (open + earlier * DAY_MINUTES) * MINUTE_MS - (now % MINUTE_MS);
  }
  return null;
}

const DAY_MINUTES = DAY_MS / MINUTE_MS;

function minutesOf(time: string): number {
  const [hours = 0, minutes = 0] = time.split(":").map(Number);
  return hours * 60 + minutes;
}

const clocks = new Map<string, Intl.DateTimeFormat>();

function wallClock(at: number, zone: string): { weekday: Weekday; minutes: number } {
  let clock = clocks.get(zone);
  if (clock === undefined) {
    const parts = { weekday: "short", hour: "2-digit", minute: "2-digit" } as const;
    clock = new Intl.DateTimeFormat("en-GB", { timeZone: zone, hourCycle: "h23", ...parts });
    clocks.set(zone, clock);
  }
  const found = new Map(clock.formatToParts(at).map(({ type, value }) => [type, value]));
  return {
    weekday: found.get("weekday") as Weekday,
    minutes: minutesOf(`${found.get("hour")}:${found.get("minute")}`),
  };
}

/** Such as "after 4 h, Mon Tue 09:30 to 16:00 America/New_York". */
export function describeSilenceRule({ spanMs, hours }: SilenceRule): string {
  const span =
    spanMs === null ? "after three times the usual interval" : `after ${describeSpan(spanMs)}`;
  if (hours === null) return span;
  const { days, from, to, zone } = hours;
  return `${span}, ${days.join(" ")} ${from} to ${to} ${zone}`;
}

/** Throws {@link UserError}. */
export function checkSilenceRule({ spanMs, hours }: SilenceRule): SilenceRule {
  if (spanMs !== null && !(spanMs >= SPAN_MS_MIN && spanMs <= SPAN_MS_MAX)) {
    throw new UserError("The span is 1 minute to 31 days, such as 30m or 4h.");
  }
  const checked = hours === null ? null : checkHours(hours);
  const isAlways = checked?.days.length === weekdays.length && checked.from === checked.to;
  return { spanMs, hours: isAlways ? null : checked };
}

function checkHours({ days, from, to, zone }: WatchedHours): WatchedHours {
  const chosen = weekdays.filter((day) => days.includes(day));
  if (chosen.length === 0) throw new UserError("Choose at least one day.");
  for (const time of [from, to]) {
    if (!/^(?:[01]\d|2[0-3]):[0-5]\d$/.test(time)) {
      throw new UserError("Write times as hours and minutes, such as 09:30.");
    }
  }
  return { days: chosen, from, to, zone: checkZone(zone) };
}

/** Returns its usual spelling. */
function checkZone(zone: string): string {
  try {
    return new Intl.DateTimeFormat("en", { timeZone: zone }).resolvedOptions().timeZone;
  } catch {
    throw new UserError(
      "The time zone is unknown: name one of the IANA database, such as America/New_York or UTC.",
    );
  }
}

/** When a desk that sends nothing is silent: what it chose, and its hours. */
import { expect, test } from "bun:test";
import {
  checkSilenceRule,
  describeSilenceRule,
  isSilent,
  openSince,
  silenceAllowedMs,
  type SilenceRule,
  type WatchedHours,
  weekdays,
} from "../../src/domain/desk/silence.ts";
import { DAY_MS, HOUR_MS, MINUTE_MS } from "../../src/lib/text/time.ts";

const workdays = weekdays.slice(0, 5);
const market: WatchedHours = {
  days: workdays,
  from: "09:30",
  to: "16:00",
  zone: "America/New_York",
};
const night: WatchedHours = { days: ["Sun"], from: "22:00", to: "06:00", zone: "UTC" };
const week: WatchedHours = { days: workdays, from: "00:00", to: "00:00", zone: "UTC" };

test.each([
  // 2026-11-24 is a Tuesday, and New York is five hours behind.
  [market, "2026-11-24T14:29:59Z", null],
  [market, "2026-11-24T14:30:59Z", "2026-11-24T14:30:00.000Z"],
  [market, "2026-11-24T20:59:59Z", "2026-11-24T14:30:00.000Z"],
  [market, "2026-11-24T21:00:00Z", null],
  [market, "2026-11-28T15:00:00Z", null],
  // In summer, four.
  [market, "2026-07-14T13:30:00Z", "2026-07-14T13:30:00.000Z"],
  [night, "2026-11-22T21:59:00Z", null],
  [night, "2026-11-23T05:59:00Z", "2026-11-22T22:00:00.000Z"],
  [night, "2026-11-23T06:00:00Z", null],
  [night, "2026-11-23T22:30:00Z", null],
  // Whole days without a pause are counted from Monday on.
  [week, "2026-11-27T23:59:30Z", "2026-11-23T00:00:00.000Z"],
  [week, "2026-11-28T00:00:00Z", null],
] as const)("hours of %o, at %s: open since %s", (hours, at, since) => {
  const found = openSince(hours, Date.parse(at));
  expect(found === null ? null : new Date(found).toISOString()).toBe(since);
});

const usual = (present: number, before = present) => ({ present, before });

test.each([
  [null, null],
  [usual(0), null],
  [usual(100), HOUR_MS],
  [usual(1), 3 * HOUR_MS],
  [usual(0.5), 6 * HOUR_MS],
  // It usually begins in this hour, or ended in the one before.
  [usual(100, 0), null],
  [usual(0, 100), null],
  [usual(100, 1), 3 * HOUR_MS],
])("with %o per hour, a desk may be silent for %p ms", (rate, allowed) => {
  expect(silenceAllowedMs({ spanMs: null, hours: null }, rate)).toBe(allowed);
  expect(silenceAllowedMs({ spanMs: 7 * MINUTE_MS, hours: null }, rate)).toBe(7 * MINUTE_MS);
});

test("a chosen span is counted from when the hours began", () => {
  const rule: SilenceRule = { spanMs: 30 * MINUTE_MS, hours: market };
  const opening = Date.parse("2026-11-24T14:30:00Z");
  const friday = opening - 4 * DAY_MS;
  expect(isSilent(friday, rule, null, opening + 30 * MINUTE_MS)).toBe(false);
  expect(isSilent(friday, rule, null, opening + 31 * MINUTE_MS)).toBe(true);
  expect(isSilent(opening + 20 * MINUTE_MS, rule, null, opening + 31 * MINUTE_MS)).toBe(false);
  expect(isSilent(friday, rule, null, opening - MINUTE_MS)).toBe(false);
});

test("a rule is checked, and written in one way", () => {
  const all = { days: weekdays, from: "09:00", to: "09:00", zone: "UTC" };
  expect(checkSilenceRule({ spanMs: null, hours: all }).hours).toBeNull();
  const odd = { ...market, days: ["Fri", "Mon"] as const, zone: "america/new_york" };
  const checked = checkSilenceRule({ spanMs: 90 * MINUTE_MS, hours: odd });
  expect(checked.hours).toEqual({ ...market, days: ["Mon", "Fri"] });
  expect(describeSilenceRule(checked)).toBe(
    "after 1 h 30 min, Mon Fri 09:30 to 16:00 America/New_York",
  );
});

test.each<[Partial<WatchedHours> & { spanMs?: number }, string]>([
  [{ spanMs: 59_999 }, "1 minute to 31 days"],
  [{ spanMs: Number.NaN }, "1 minute to 31 days"],
  [{ spanMs: 32 * DAY_MS }, "1 minute to 31 days"],
  [{ days: [] }, "at least one day"],
  [{ days: ["Someday" as "Mon"] }, "at least one day"],
  [{ from: "9:30" }, "such as 09:30"],
  [{ to: "24:00" }, "such as 09:30"],
  [{ zone: "Mars/Base" }, "America/New_York or UTC"],
  [{ zone: "" }, "America/New_York or UTC"],
])("a rule with %o is refused: %s", ({ spanMs = null, ...hours }, says) => {
  expect(() => checkSilenceRule({ spanMs, hours: { ...market, ...hours } })).toThrow(says);
});

/** Ids strictly increase in commit order, whatever the clock does. */
import { describe, expect, test } from "bun:test";
import * as fc from "fast-check";
import { decodeTime } from "ulid";
import { IdSequence } from "../../src/domain/signal/id.ts";
import { HOUR_MS } from "../../src/lib/text/time.ts";

/** The last time that a ULID can hold, in milliseconds. */
const TIME_MAX = 2 ** 48 - 1;

describe("IdSequence", () => {
  const clock = fc.array(fc.integer({ min: 0, max: TIME_MAX - 10 }), { minLength: 1 });

  test("increases strictly and has the latest time, also after a restart", () => {
    fc.assert(
      fc.property(clock, clock, (before, after) => {
        let sequence = new IdSequence(null);
        const ids = before.map((time) => sequence.next(time));
        sequence = new IdSequence(ids.at(-1) ?? null);
        ids.push(...after.map((time) => sequence.next(time)));
        expectRising(ids);
        let latest = 0;
        for (const [index, time] of [...before, ...after].entries()) {
          latest = Math.max(latest, time);
          expect(decodeTime(ids[index] ?? "")).toBe(latest);
        }
      }),
    );
  });

  test("increments the random part, and takes the next millisecond when it is used up", () => {
    expect(new IdSequence("01K5QZ8F3V00000000000000ZZ").next(0)).toBe("01K5QZ8F3V0000000000000100");
    const full = `01K5QZ8F3V${"Z".repeat(16)}`;
    const time = decodeTime(full);
    const sequence = new IdSequence(full);
    const ids = [full, sequence.next(time), sequence.next(time - HOUR_MS)];
    expectRising(ids);
    expect(ids.map(decodeTime)).toEqual([time, time + 1, time + 1]);
  });

  test("has 80 new random bits in each millisecond", () => {
    const parts = Array.from({ length: 1_000 }, (_, time) => new IdSequence(null).next(time));
    expect(new Set(parts.map((id) => id.slice(10))).size).toBe(1_000);
  });
});

function expectRising(ids: readonly string[]): void {
  for (const [index, id] of ids.entries()) {
    expect(id).toMatch(/^[0-7][0-9A-HJKMNP-TV-Z]{25}$/);
    if (index > 0) expect(id > (ids[index - 1] ?? "")).toBe(true);
  }
}

import { describe, expect, test } from "bun:test";
import * as fc from "fast-check";
import { decodeTime } from "ulid";
import { IdSequence } from "../src/domain/id.ts";
import { type Answer, query, signal, startTestApp, temporaryFolder } from "./_setup.ts";

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
const START = Date.UTC(2026, 0, 1);
/** The last time that ten characters of a ULID can say, in milliseconds. */
const TIME_MAX = 2 ** 48 - 1;

function idAndTime({ status, body }: Answer): { id: string; receivedAt: number } {
  expect(status).toBe(201);
  return { id: String(body["id"]), receivedAt: Number(body["received_at"]) };
}

function expectRising(ids: readonly string[]): void {
  for (const [index, id] of ids.entries()) {
    expect([id, index === 0 || id > (ids[index - 1] ?? "")]).toEqual([id, true]);
  }
  expect(new Set(ids).size).toBe(ids.length);
}

const steps: [name: string, steps: number[]][] = [
  ["stands still", [0, 0, 0]],
  ["ticks", [1, 1, 1]],
  ["steps back by an hour", [1, -HOUR_MS, 1, 1]],
  ["steps forward by a day", [1, DAY_MS, 1, 1]],
  ["steps forward by a day and back again", [DAY_MS, 1, -DAY_MS, 1, 1]],
];

describe("ids rise strictly, and received_at is the clock's, when the clock", () => {
  test.each(steps)("%s while the server runs", async (_name, changes) => {
    let time = START;
    const { post, dataDir } = await startTestApp({ now: () => time });
    const ids = [idAndTime(await post(signal)).id];
    for (const change of changes) {
      time += change;
      const { id, receivedAt } = idAndTime(await post(signal));
      expect(receivedAt).toBe(time);
      ids.push(id);
    }
    expectRising(ids);
    const rows = query<{ id: string }>(dataDir, "SELECT id FROM signals ORDER BY seq");
    expect(rows.map((row) => row.id)).toEqual(ids);
  });

  test.each(steps)("%s across restarts", async (_name, changes) => {
    const dataDir = temporaryFolder();
    let time = START;
    const ids: string[] = [];
    for (const change of [0, ...changes]) {
      time += change;
      const { post, stop } = await startTestApp({ dataDir, now: () => time });
      for (let count = 0; count < 2; count++) {
        const { id, receivedAt } = idAndTime(await post(signal));
        expect(receivedAt).toBe(time);
        ids.push(id);
      }
      await stop();
    }
    expectRising(ids);
  });
});

test("an id tells the time of receipt, wherever the order allows", async () => {
  let time = START;
  const { post } = await startTestApp({ now: () => time });
  expect(decodeTime(idAndTime(await post(signal)).id)).toBe(START);
  time -= HOUR_MS;
  expect(decodeTime(idAndTime(await post(signal)).id)).toBe(START);
  time = START + 1;
  expect(decodeTime(idAndTime(await post(signal)).id)).toBe(START + 1);
});

test("a repeat gets the original's id, whatever the clock says by then", async () => {
  let time = START;
  const { post } = await startTestApp({ now: () => time });
  const repeated = { ...signal, client_signal_id: "once" };
  const { id } = idAndTime(await post(repeated));
  for (const change of [-HOUR_MS, DAY_MS, 365 * DAY_MS]) {
    time += change;
    expect((await post(repeated)).body).toEqual({ id, deduped: true });
  }
});

describe("IdSequence", () => {
  const times = fc.array(fc.integer({ min: 0, max: TIME_MAX - 10 }), { minLength: 1 });
  const idPattern = /^[0-7][0-9A-HJKMNP-TV-Z]{25}$/;

  test("rises strictly for any course of the clock", () => {
    fc.assert(
      fc.property(times, (clock) => {
        const sequence = new IdSequence(null);
        const ids = clock.map((time) => sequence.next(time));
        for (const id of ids) expect(id).toMatch(idPattern);
        for (const [index, id] of ids.entries()) {
          if (index > 0) expect(id > (ids[index - 1] ?? "")).toBe(true);
        }
      }),
    );
  });

  test("has the time of the clock, or of the latest time before where the clock is behind", () => {
    fc.assert(
      fc.property(times, (clock) => {
        const sequence = new IdSequence(null);
        let latest = 0;
        for (const time of clock) {
          latest = Math.max(latest, time);
          expect(decodeTime(sequence.next(time))).toBe(latest);
        }
      }),
      // The first moment of all is a time like any other.
      { examples: [[[0]], [[0, 1, 0]]] },
    );
  });

  test("goes on behind the id that it is given", () => {
    fc.assert(
      fc.property(times, times, (before, after) => {
        const first = new IdSequence(null);
        const last = before.map((time) => first.next(time)).at(-1) ?? null;
        const second = new IdSequence(last);
        let previous = last ?? "";
        for (const time of after) {
          const id = second.next(time);
          expect(id > previous).toBe(true);
          previous = id;
        }
      }),
    );
  });

  test("takes the next millisecond when the random part is used up", () => {
    const full = `01K5QZ8F3V${"Z".repeat(16)}`;
    const time = decodeTime(full);
    for (const now of [time, time - HOUR_MS]) {
      const sequence = new IdSequence(full);
      const next = sequence.next(now);
      expect(decodeTime(next)).toBe(time + 1);
      const afterNext = sequence.next(now);
      expect(decodeTime(afterNext)).toBe(time + 1);
      expect(afterNext > next && next > full).toBe(true);
    }
  });

  test("carries over within the random part", () => {
    const sequence = new IdSequence("01K5QZ8F3V00000000000000ZZ");
    expect(sequence.next(0)).toBe("01K5QZ8F3V0000000000000100");
  });

  test("has 80 random bits anew in each millisecond", () => {
    const parts = Array.from({ length: 1_000 }, (_, time) => new IdSequence(null).next(time));
    expect(new Set(parts.map((id) => id.slice(10))).size).toBe(1_000);
  });
});

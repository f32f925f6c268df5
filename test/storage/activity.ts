/** Counts of requests. */
import { describe, expect, test } from "bun:test";
import {
  type ActivityBatch,
  activityWidths,
  DIFFERING_KEPT,
  type DifferingQuery,
  REPEATED_SIGNALS_KEPT,
} from "../../src/domain/activity/activity.ts";
import { DAY_MS, HOUR_MS } from "../../src/lib/text/time.ts";
import { rejection } from "../kit/setup.ts";
import { START, start } from "./start.ts";
import { rejectsTests } from "./rejects.ts";

export function activityTests(): void {
  const mine = { deskId: 1, keyId: "key-1" };
  const ofDesk = { deskId: 1, keyId: null };

  test("buckets add up, by desk and by key, in minutes, hours and days", async () => {
    const { activity } = await start();
    await activity.write(minuteOf(START, { stored: 3, lastAt: START + 5 }));
    const more = { stored: 1, duplicate: 2, rejected: 4, unauthorized: 1, lastAt: START + 9 };
    await activity.write(minuteOf(START, more));
    await activity.write(minuteOf(START + HOUR_MS, { stored: 5 }));
    await activity.write(minuteOf(START, { keyId: "key-2", stored: 100 }));
    await activity.write(minuteOf(START, { deskId: 2, stored: 1_000 }));
    const first = { start: START, stored: 4, duplicate: 2, rejected: 4 };
    const last = { start: START + HOUR_MS, stored: 5, duplicate: 0, rejected: 0 };
    expect(await activity.buckets(mine, "minute", START)).toEqual([first, last]);
    expect(await activity.buckets(mine, "hour", START + 1)).toEqual([first, last]);
    expect(await activity.buckets(mine, "hour", START + HOUR_MS)).toEqual([last]);
    expect(await activity.buckets(mine, "day", START + 2 * HOUR_MS)).toEqual([
      { ...first, stored: 9 },
    ]);
    const all = await activity.buckets(ofDesk, "day", 0);
    expect(all.map(({ stored }) => stored)).toEqual([109]);
    const both = await activity.bucketsOfKeys(1, ["key-1", "key-2", "key-3"], "hour", START + 1);
    expect([...both]).toEqual([
      ["key-1", [first, last]],
      ["key-2", [{ start: START, stored: 100, duplicate: 0, rejected: 0 }]],
    ]);
    expect((await activity.bucketsOfKeys(2, ["key-2"], "hour", START)).size).toBe(0);
    const counts = { requests: 10, rejected: 4, unauthorized: 1, lastAt: START + 9 };
    const none = { requests: 5, rejected: 0, unauthorized: 0, lastAt: START + HOUR_MS };
    const sum = { ...counts, requests: 15, lastAt: START + HOUR_MS };
    expect([...(await activity.ofKeys(1, ["key-1", "key-3"], START))]).toEqual([["key-1", sum]]);
    expect((await activity.ofKeys(1, ["key-1"], START + HOUR_MS)).get("key-1")).toEqual(none);
    expect((await activity.ofKeys(2, ["key-2"], START)).size).toBe(0);
  });

  test("a batch that cannot be recorded throws, and the next ones are recorded", async () => {
    const { activity } = await start();
    const bad = minuteOf(START, { keyId: null as unknown as string, stored: 7 });
    const write = async (): Promise<unknown> => activity.write(bad);
    expect(await rejection(write())).toBeInstanceOf(Error);
    expect(await activity.write(minuteOf(START, { stored: 1 }))).toBeNull();
    expect((await activity.buckets(ofDesk, "minute", 0))[0]?.stored).toBe(1);
  });

  test("each width keeps as many buckets as it shows", async () => {
    const { activity } = await start();
    for (const { ms, kept } of Object.values(activityWidths)) {
      for (let age = kept + 20; age >= 0; age -= 1) {
        await activity.write(minuteOf(START - age * ms, { stored: 1 }));
      }
    }
    for (const width of ["minute", "hour", "day"] as const) {
      const found = await activity.buckets(mine, width, 0);
      expect(found).toHaveLength(activityWidths[width].kept);
    }
  });

  test("ended keys that are still used are found, the latest first", async () => {
    const { activity } = await start();
    for (const number of [2, 3, 1]) {
      const lastAt = START + number;
      const use = { keyId: `key-${number}`, rejected: 1, unauthorized: 1, lastAt };
      await activity.write(minuteOf(START, use));
    }
    const use = { rejected: 1, unauthorized: 1 };
    await activity.write(minuteOf(START, { keyId: "key-4", rejected: 9, lastAt: START + 9 }));
    await activity.write(minuteOf(START, { deskId: 2, keyId: "key-5", ...use }));
    await activity.write(minuteOf(START - DAY_MS, { keyId: "key-6", ...use }));
    expect(await activity.keysStillInUse(1, START, 10)).toEqual(["key-3", "key-2", "key-1"]);
    expect(await activity.keysStillInUse(1, START, 2)).toEqual(["key-3", "key-2"]);
  });

  describe("rejected requests", rejectsTests);

  test("duplicates that differ are kept per signal and key, the latest first", async () => {
    const { activity } = await start();
    const one = { deskId: 1, signalId: "a", keyId: "key-1", count: 1, lastAt: START };
    const write = async (...differing: ActivityBatch["differing"]) =>
      activity.write({ minutes: [], rejects: [], repeats: [], differing });
    const read = async (more: Partial<DifferingQuery> = {}) =>
      activity.differing({ deskId: 1, before: null, limit: 10, ...more });
    await write({ ...one, fields: ["price"] }, { ...one, signalId: "b", fields: ["side"] });
    await write({ ...one, fields: ["price", "quantity"], lastAt: START + 5 });
    await write({ ...one, keyId: "key-2", fields: ["price"], lastAt: START - 5 });
    await write({ ...one, deskId: 2, fields: ["type"] });
    const found = await read();
    expect(found.map(({ signalId, keyId, count }) => [signalId, keyId, count])).toEqual([
      ["a", "key-1", 2],
      ["b", "key-1", 1],
      ["a", "key-2", 1],
    ]);
    expect(found[0]).toMatchObject({ lastAt: START + 5 });
    expect(found[0]?.fields.toSorted()).toEqual(["price", "quantity"]);
    expect(await read({ before: found[0] ?? null, limit: 1 })).toEqual(found.slice(1, 2));
    expect(await read({ deskId: 2 })).toHaveLength(1);

    const many = Array.from({ length: DIFFERING_KEPT }, (_, index) => `c${index}`);
    await write(...many.map((signalId) => ({ ...one, signalId, fields: [], lastAt: START + 9 })));
    const kept = await read({ limit: DIFFERING_KEPT + 10 });
    expect(kept).toHaveLength(DIFFERING_KEPT);
    expect(kept.every(({ signalId }) => signalId.startsWith("c"))).toBe(true);
    expect(await read({ deskId: 2 })).toHaveLength(1);
  });

  test("duplicates of a signal add up; the newest signals that have any are kept", async () => {
    const { activity } = await start();
    const write = async (...repeats: ReturnType<typeof repeatsOf>[]) =>
      activity.write({ minutes: [], rejects: [], repeats, differing: [] });
    await write(repeatsOf("0"), repeatsOf("signal", ["price"]));
    await write(repeatsOf("signal", ["side", "price"], START + 5));
    await write(repeatsOf("signal", [], START + 1));
    const found = await activity.repeatsOf(1, "signal");
    expect(found).toMatchObject({ duplicates: 6, differing: 2, lastAt: START + 5 });
    expect(found?.differs.toSorted()).toEqual(["price", "side"]);
    expect(await activity.repeatsOf(2, "signal")).toBeNull();
    expect(await activity.repeatsOf(1, "another")).toBeNull();
    const ids = Array.from({ length: REPEATED_SIGNALS_KEPT }, (_, index) => `1${index}`);
    await write(...ids.map((id) => repeatsOf(id)));
    expect(await activity.repeatsOf(1, "0")).toBeNull();
    expect(await activity.repeatsOf(1, "signal")).not.toBeNull();
  });
}

function minuteOf(
  at: number,
  counts: Partial<ActivityBatch["minutes"][number]> = {},
): ActivityBatch {
  const none = { stored: 0, duplicate: 0, rejected: 0, unauthorized: 0 };
  const base = { deskId: 1, keyId: "key-1", start: at, ...none, lastAt: at };
  return { minutes: [{ ...base, ...counts }], rejects: [], repeats: [], differing: [] };
}

function repeatsOf(signalId: string, differs: string[] = [], lastAt = START) {
  const differing = differs.length === 0 ? 0 : 1;
  return { deskId: 1, signalId, duplicates: 2, differing, differs, lastAt };
}

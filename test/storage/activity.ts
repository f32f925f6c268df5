/** Counts of requests. */
import { describe, expect, test } from "bun:test";
import {
  activityWidths,
  type BucketQuery,
  DIFFERING_KEPT,
  type DifferingQuery,
  REPEATS_KEPT,
} from "../../src/domain/activity/activity.ts";
import { DAY_MS, HOUR_MS } from "../../src/lib/text/time.ts";
import { rejection } from "../kit/setup.ts";
import { batchOf, minuteOf, repeatsOf } from "../domain/_activity.ts";
import { START, start } from "./start.ts";
import { rejectsTests } from "./activity/rejects.ts";
import { sentTests } from "./activity/sent.ts";

export function activityTests(): void {
  test("buckets add up, by desk and by key, in minutes, hours and days", async () => {
    const { activity } = await start();
    await activity.write(batchOf(minuteOf(START, { stored: 3, lastAt: START + 5 })));
    const more = { stored: 1, duplicate: 2, rejected: 4, unauthorized: 1, lastAt: START + 9 };
    await activity.write(
      batchOf(
        minuteOf(START, more),
        minuteOf(START + HOUR_MS, { stored: 5 }),
        minuteOf(START, { keyId: "key-2", stored: 100 }),
        minuteOf(START, { deskId: 2, stored: 1_000 }),
      ),
    );
    const read = async (query: Partial<BucketQuery>) =>
      activity.buckets({ deskId: 1, keyIds: ["key-1"], width: "hour", from: START, ...query });
    const first = { keyId: "key-1", start: START, ...more, stored: 4 };
    const none = { duplicate: 0, rejected: 0, unauthorized: 0 };
    const last = { ...first, ...none, start: START + HOUR_MS, stored: 5, lastAt: START + HOUR_MS };
    expect(await read({ width: "minute" })).toEqual([first, last]);
    expect(await read({ from: START + 1 })).toEqual([first, last]);
    expect(await read({ from: START + HOUR_MS })).toEqual([last]);
    expect(await read({ width: "day", from: START + 2 * HOUR_MS })).toEqual([
      { ...first, stored: 9, lastAt: START + HOUR_MS },
    ]);
    expect(await read({ width: "day", from: 0, keyIds: null })).toEqual([
      { ...first, keyId: null, stored: 109, lastAt: START + HOUR_MS },
    ]);
    const both = await read({ keyIds: ["key-1", "key-2", "key-3"] });
    expect(both.map(({ keyId, stored }) => [keyId, stored])).toEqual([
      ["key-1", 4],
      ["key-2", 100],
      ["key-1", 5],
    ]);
    expect(await read({ deskId: 2, keyIds: ["key-2"] })).toEqual([]);
  });

  test("buckets of several desks are read at once, those of all keys together", async () => {
    const { activity } = await start();
    await activity.write(
      batchOf(
        minuteOf(START, { stored: 3 }),
        minuteOf(START, { keyId: "key-2", rejected: 4 }),
        minuteOf(START + HOUR_MS, { stored: 5 }),
        minuteOf(START, { deskId: 2, duplicate: 7 }),
        minuteOf(START, { deskId: 3, stored: 9 }),
      ),
    );
    const none = { stored: 0, duplicate: 0, rejected: 0 };
    const read = async (from: number) =>
      activity.bucketsOfDesks([2, 1, 9], { width: "minute", from });
    const found = await read(START);
    expect(
      found.toSorted((one, other) => one.start - other.start || one.deskId - other.deskId),
    ).toEqual([
      { ...none, deskId: 1, start: START, stored: 3, rejected: 4 },
      { ...none, deskId: 2, start: START, duplicate: 7 },
      { ...none, deskId: 1, start: START + HOUR_MS, stored: 5 },
    ]);
    expect(await read(START + HOUR_MS)).toEqual([found[2]].flatMap((one) => one ?? []));
    expect(await activity.bucketsOfDesks([], { width: "minute", from: 0 })).toEqual([]);
  });

  test("a batch that cannot be recorded throws, and the next ones are recorded", async () => {
    const { activity } = await start();
    const bad = minuteOf(START, { keyId: null as unknown as string, stored: 7 });
    const write = async (): Promise<unknown> => activity.write(batchOf(bad));
    expect(await rejection(write())).toBeInstanceOf(Error);
    expect(await activity.write(batchOf(minuteOf(START, { stored: 1 })))).toBeNull();
    const query = { deskId: 1, keyIds: null, width: "minute", from: 0 } as const;
    expect(await activity.buckets(query)).toMatchObject([{ stored: 1 }]);
  });

  test("each width keeps as many buckets as it shows", async () => {
    const { activity } = await start();
    for (const { ms, kept } of Object.values(activityWidths)) {
      for (let age = kept + 20; age >= 0; age -= 1) {
        await activity.write(batchOf(minuteOf(START - age * ms, { stored: 1 })));
      }
    }
    for (const width of ["minute", "hour", "day"] as const) {
      const found = await activity.buckets({ deskId: 1, keyIds: null, width, from: 0 });
      expect(found).toHaveLength(activityWidths[width].kept);
    }
  });

  test("ended keys that are still used are found, the latest first", async () => {
    const { activity } = await start();
    const use = { rejected: 1, unauthorized: 1 };
    const uses = [2, 3, 1].map((number) =>
      minuteOf(START, { ...use, keyId: `key-${number}`, lastAt: START + number }),
    );
    await activity.write(
      batchOf(
        ...uses,
        minuteOf(START + HOUR_MS, { ...use, keyId: "key-1" }),
        minuteOf(START, { keyId: "key-4", rejected: 9, lastAt: START + 9 }),
        minuteOf(START, { ...use, deskId: 2, keyId: "key-5" }),
        minuteOf(START - DAY_MS, { ...use, keyId: "key-6" }),
      ),
    );
    expect(await activity.keysStillInUse(1, START, 10)).toEqual(["key-1", "key-3", "key-2"]);
    expect(await activity.keysStillInUse(1, START, 2)).toEqual(["key-1", "key-3"]);
    const ofAll = await activity.keysStillInUse(null, START, 10);
    expect(ofAll.toSorted()).toEqual(["key-1", "key-2", "key-3", "key-5"]);
  });

  describe("rejected requests", rejectsTests);
  describe("what was sent", sentTests);

  test("duplicates add up by signal, and those that differ by signal and key, the latest first", async () => {
    const { read, write, activity } = await startRepeats();
    await write(
      repeatsOf("a", ["price"], { lastAt: START }),
      repeatsOf("b", ["side"], { lastAt: START }),
      repeatsOf("c", [], { lastAt: START + 9 }),
    );
    await write(
      repeatsOf("a", ["quantity"], { lastAt: START + 5 }),
      repeatsOf("a", [], { lastAt: START + 7 }),
      repeatsOf("a", ["symbol"], { lastAt: START - 5, keyId: "key-2" }),
      repeatsOf("a", ["type"], { lastAt: START, deskId: 2 }),
    );
    const found = await read();
    expect(found.map(({ signalId, keyId, differing }) => [signalId, keyId, differing])).toEqual([
      ["a", "key-1", 2],
      ["b", "key-1", 1],
      ["a", "key-2", 1],
    ]);
    expect(found[0]).toMatchObject({ differedAt: START + 5, lastAt: START + 7 });
    expect(found[0]?.differs.toSorted()).toEqual(["price", "quantity"]);
    expect(await read({ before: found[0] ?? null, limit: 1 })).toEqual(found.slice(1, 2));
    expect(await read({ before: found[1] ?? null })).toEqual(found.slice(2));
    expect(await read({ deskId: 2 })).toHaveLength(1);

    const { differs, ...sum } = (await activity.repeatsOf(1, "a")) ?? {};
    const times = { lastAt: START + 7, differedAt: START + 5 };
    expect<object>(sum).toEqual({ duplicates: 8, differing: 3, ...times });
    expect(differs?.toSorted()).toEqual(["price", "quantity", "symbol"]);
    expect(await activity.repeatsOf(1, "c")).toMatchObject({ differing: 0, differs: [] });
    expect(await activity.repeatsOf(2, "b")).toBeNull();
    expect(await activity.differingTotal(1, 0)).toEqual({ count: 4, lastAt: START + 5 });
    expect(await activity.differingTotal(1, START)).toEqual({ count: 3, lastAt: START + 5 });
    expect(await activity.differingTotal(1, START + 6)).toBeNull();
  });

  test("the latest signals with duplicates are kept, and those that differed last", async () => {
    const { read, write, activity } = await startRepeats();
    await write(
      repeatsOf("a-equal", [], { lastAt: START }),
      repeatsOf("a-theirs", ["price"], { lastAt: START, deskId: 2 }),
      repeatsOf("b-differs", ["price"], { lastAt: START }),
    );
    await write(...many("c", REPEATS_KEPT - 2));
    expect(await activity.repeatsOf(1, "a-equal")).not.toBeNull();
    await write(...many("d", 1));
    expect(await activity.repeatsOf(1, "a-equal")).toBeNull();
    await write(...many("e", 1));
    // An older signal, but one of those that differed last.
    expect(await activity.repeatsOf(1, "b-differs")).not.toBeNull();
    // All of one moment: none is dropped with another.
    await write(...many("f", DIFFERING_KEPT, ["price"]));
    expect(await activity.repeatsOf(1, "b-differs")).toBeNull();
    expect(await read({ limit: DIFFERING_KEPT + 10 })).toHaveLength(DIFFERING_KEPT);
    await write(...many("g", 1, ["price"]));
    expect(await read({ limit: DIFFERING_KEPT + 10 })).toHaveLength(DIFFERING_KEPT + 1);
    expect(await read({ deskId: 2 })).toHaveLength(1);
  });
}

function many(name: string, count: number, differs: string[] = []) {
  return Array.from({ length: count }, (_, index) =>
    repeatsOf(`${name}${index}`, differs, { lastAt: START + 9 }),
  );
}

async function startRepeats() {
  const { activity } = await start();
  return {
    activity,
    write: async (...repeats: ReturnType<typeof repeatsOf>[]) =>
      activity.write({ ...batchOf(), repeats }),
    read: async (query: Partial<DifferingQuery> = {}) =>
      activity.differing({ deskId: 1, before: null, limit: 10, ...query }),
  };
}

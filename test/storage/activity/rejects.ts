/** Rejected requests. */
import { expect, test } from "bun:test";
import {
  REJECT_REASONS_KEPT,
  REJECT_REASONS_PER_KEY_KEPT,
  type RejectReason,
  REQUESTS_PER_REASON_KEPT,
} from "../../../src/domain/activity/activity.ts";
import { DAY_MS, HOUR_MS, MINUTE_MS } from "../../../src/lib/text/time.ts";
import {
  batchOf,
  rateLimited,
  rejectsOf,
  requestIdOf,
  sideIsRequired,
} from "../../domain/_activity.ts";
import { START, start } from "../start.ts";

export function rejectsTests(): void {
  test("add up by reason, whatever the order of their fields, with the keys that sent them", async () => {
    const { read, latest, write } = await startRejects();
    const both = { side: "required", sied: "unknown field" };
    const turned = { sied: "unknown field", side: "required" };
    await write(rejectsOf([1, 2], START, { reason: fieldsOf(both) }));
    await write(
      rejectsOf([5], START, { reason: fieldsOf(turned), keyId: "key-2" }),
      rejectsOf([3, 4], START, { reason: fieldsOf(turned), count: 700 }),
      rejectsOf([9], START, { reason: rateLimited }),
      rejectsOf([8], START, { deskId: 2 }),
    );
    const [first, second, ...others] = await read();
    expect(others).toEqual([]);
    expect(first).toMatchObject({ ...rateLimited, count: 1, keyIds: ["key-1"] });
    const { id = "", ...rest } = second ?? {};
    expect(rest).toEqual({
      ...fieldsOf(both),
      count: 703,
      firstAt: START + 1,
      lastAt: START + 5,
      latestId: requestIdOf(5),
      keyIds: ["key-2", "key-1"],
    });
    expect(await latest(id)).toEqual([5, 4, 3, 2, 1]);
    expect(await latest(id, "key-1", 2)).toEqual([4, 3]);
  });

  test("are a new reason with each other status, error, field, reason and number of further fields", async () => {
    const { read, write } = await startRejects();
    const reasons: RejectReason[] = [
      sideIsRequired,
      { ...sideIsRequired, status: 400 },
      { ...sideIsRequired, error: "bad_request" },
      { ...sideIsRequired, fields: null },
      { ...sideIsRequired, moreFields: 1 },
      fieldsOf({ side: "must be a string" }),
      fieldsOf({ symbol: "required" }),
      fieldsOf({ side: "required", symbol: "required" }),
      fieldsOf(JSON.parse('{"__proto__": "unknown field"}') as Record<string, string>),
    ];
    await write(...reasons.map((reason, index) => rejectsOf([index], START, { reason })));
    const found = await read();
    expect(found.map(({ count }) => count)).toEqual(reasons.map(() => 1));
    expect(new Set(found.map(({ id }) => id)).size).toBe(reasons.length);
    const [own] = await read({ field: "__proto__" });
    expect(Object.entries(own?.fields ?? {})).toEqual([["__proto__", "unknown field"]]);
  });

  test("keep the first and the latest requests per key and reason: a flood displaces no other reason or key", async () => {
    const { read, latest, write } = await startRejects();
    await write(
      rejectsOf([1], START),
      rejectsOf([2], START, { keyId: "key-2", reason: rateLimited }),
    );
    for (let from = 100; from < 13_100; from += 1_000) {
      const numbers = Array.from({ length: 1_000 }, (_, index) => from + index);
      await write(rejectsOf(numbers, START, { reason: rateLimited }));
    }
    const [flood, lonely] = await read();
    const numbers = Array.from({ length: REQUESTS_PER_REASON_KEPT }, (_, n) => 13_099 - n);
    expect(flood).toMatchObject({ count: 13_001, firstAt: START + 2 });
    expect(await latest(flood?.id)).toEqual([...numbers, 100, 2]);
    expect((await read({ keyId: "key-1" }))[0]).toMatchObject({ firstAt: START + 100 });
    expect(lonely).toMatchObject({ ...sideIsRequired, count: 1 });
    expect(await latest(lonely?.id)).toEqual([1]);
  });

  test("are limited to a number of reasons per desk; the least recent are dropped", async () => {
    const { read, write } = await startRejects();
    await write(
      rejectsOf([0], START, { deskId: 2 }),
      rejectsOf([1], START),
      ofTenKeys(2),
      ofTenKeys(3),
    );
    const others = Array.from({ length: REJECT_REASONS_KEPT - 2 }, (_, index) =>
      ofTenKeys(10 + index),
    );
    await write(...others, rejectsOf([999], START));
    const found = await read();
    expect(found).toHaveLength(REJECT_REASONS_KEPT);
    expect(found[0]).toMatchObject({ ...sideIsRequired, count: 2 });
    expect(await read({ field: "made-up-2" })).toEqual([]);
    expect(await read({ field: "made-up-3" })).toHaveLength(1);
    expect(await read({ deskId: 2 })).toHaveLength(1);
    // If it comes again, it starts again.
    await write(ofTenKeys(2, 1_000));
    expect(await read({ field: "made-up-2" })).toMatchObject([{ count: 1 }]);
  });

  test("of a key that invents field names displace no other key's", async () => {
    const { read, write } = await startRejects();
    await write(rejectsOf([1], START, { keyId: "key-2" }));
    for (let from = 10; from < 10 + REJECT_REASONS_KEPT; from += 100) {
      await write(...Array.from({ length: 100 }, (_, index) => madeUp(from + index)));
    }
    const found = await read();
    expect(found).toHaveLength(REJECT_REASONS_PER_KEY_KEPT + 1);
    expect(found[0]?.fields).toEqual({ [`made-up-${9 + REJECT_REASONS_KEPT}`]: "unknown field" });
    expect(found.at(-1)).toMatchObject({ ...sideIsRequired, keyIds: ["key-2"] });
  });

  test("are found by key, status, field and reason, in pages", async () => {
    const { read, write } = await startRejects();
    const other = fieldsOf({ side: "required", price: "must be a number" });
    await write(
      rejectsOf([1], START),
      rejectsOf([2], START, { reason: other, keyId: "key-2" }),
      rejectsOf([3, 4], START, { reason: rateLimited }),
      rejectsOf([5], START, { reason: rateLimited, keyId: "key-2" }),
    );
    const found = async (query: object) =>
      (await read(query)).map(({ latestId }) => numberOf(latestId));
    expect(await found({})).toEqual([5, 2, 1]);
    expect(await found({ keyId: "key-1" })).toEqual([4, 1]);
    expect(await found({ keyId: "key-3" })).toEqual([]);
    expect(await found({ status: 422 })).toEqual([2, 1]);
    expect(await found({ field: "side" })).toEqual([2, 1]);
    expect(await found({ field: "price", status: 422, keyId: "key-2" })).toEqual([2]);
    expect(await found({ field: "price", keyId: "key-1" })).toEqual([]);
    expect(await found({ reason: "0".repeat(16) })).toEqual([]);
    expect(await found({ limit: 1 })).toEqual([5]);
    expect(await found({ before: requestIdOf(5), limit: 1 })).toEqual([2]);
    expect(await found({ before: requestIdOf(1) })).toEqual([]);
    const [{ id, count, keyIds } = {}] = await read({ keyId: "key-1" });
    expect({ count, keyIds }).toEqual({ count: 2, keyIds: ["key-1"] });
    expect(await found({ reason: id })).toEqual([5]);
  });

  test("are counted in minutes, hours and days", async () => {
    const { read, write } = await startRejects();
    for (const [at, number] of [
      [START - 90 * DAY_MS, 1],
      [START - 2 * DAY_MS, 2],
      [START - 2 * HOUR_MS, 3],
      [START - 2 * MINUTE_MS, 4],
      [START, 5],
    ] as const) {
      await write(rejectsOf([number], at, { count: 10 ** number }));
    }
    await write(rejectsOf([1], START - DAY_MS, { reason: rateLimited }));
    const counts = async (query: object) => (await read(query)).map(({ count }) => count);
    const since = (width: string, ageMs: number) =>
      counts({ since: { width, from: START - ageMs } });
    expect(await since("minute", 0)).toEqual([100_000]);
    expect(await since("minute", 2 * MINUTE_MS)).toEqual([110_000]);
    expect(await since("hour", 2 * HOUR_MS)).toEqual([111_000]);
    expect(await since("day", DAY_MS)).toEqual([111_000, 1]);
    expect(await counts({})).toEqual([111_100, 1]);
  });
}

async function startRejects() {
  const { activity } = await start();
  return {
    read: async (query: object = {}) =>
      activity.rejects({ deskId: 1, since: { width: "day", from: 0 }, limit: 1_000, ...query }),
    /** The numbers of the latest requests. */
    latest: async (reason = "", keyId: string | null = null, limit = 1_000) => {
      const found = await activity.rejected({ deskId: 1, reason, keyId }, limit);
      return found.map(({ request_id }) => numberOf(request_id));
    },
    write: async (...minutes: ReturnType<typeof rejectsOf>[]) =>
      activity.write(batchOf(...minutes)),
  };
}

const numberOf = (requestId: string) => Number(requestId.slice(-12));

const fieldsOf = (fields: Record<string, string>): RejectReason => ({ ...sideIsRequired, fields });

/** A request with a field that nobody else has. */
function madeUp(number: number, keyId = "key-1", at = number) {
  return rejectsOf([at], START, {
    keyId,
    reason: fieldsOf({ [`made-up-${number}`]: "unknown field" }),
  });
}

function ofTenKeys(number: number, at = number) {
  return madeUp(number, `key-${number % 10}`, at);
}

/** Rejected requests. */
import { expect, test } from "bun:test";
import {
  REJECT_HOURS_KEPT,
  REJECT_REASONS_KEPT,
  REJECT_REASONS_PER_KEY_KEPT,
  type RejectReason,
  REQUESTS_PER_REASON_KEPT,
} from "../../src/domain/activity/activity.ts";
import { HOUR_MS } from "../../src/lib/text/time.ts";
import { rateLimited, rejectsOf, requestIdOf, sideIsRequired } from "../domain/_activity.ts";
import { START, start } from "./start.ts";

export function rejectsTests(): void {
  const all = { deskId: 1, limit: 1_000, requestsMax: 1_000 };
  test("add up by reason, whatever the order of their fields, with the keys that sent them", async () => {
    const { activity, write } = await startRejects();
    const both = { side: "required", sied: "unknown field" };
    const turned = { sied: "unknown field", side: "required" };
    await write(rejectsOf([1, 2], START, { reason: fieldsOf(both) }));
    await write(
      rejectsOf([5], START, { reason: fieldsOf(turned), keyId: "key-2" }),
      rejectsOf([3, 4], START, { reason: fieldsOf(turned), count: 700 }),
      rejectsOf([9], START, { reason: rateLimited }),
      rejectsOf([8], START, { deskId: 2 }),
    );
    const [first, second, ...others] = await activity.rejects(all);
    expect(others).toEqual([]);
    expect(first).toMatchObject({ ...rateLimited, count: 1, keyIds: ["key-1"] });
    const { id = "", latest = [], ...rest } = second ?? {};
    expect(rest).toEqual({
      ...fieldsOf(both),
      count: 703,
      firstAt: START + 1,
      lastAt: START + 5,
      keyIds: ["key-2", "key-1"],
    });
    expect(latest.map(({ request_id }) => request_id)).toEqual([5, 4, 3, 2, 1].map(requestIdOf));
    const five = { request_id: requestIdOf(5), key_id: "key-2", at: START + 5, message: null };
    expect(latest[0]).toEqual(five);
    expect(await activity.rejects({ ...all, reason: id, requestsMax: 2 })).toMatchObject([
      { id, latest: latest.slice(0, 2) },
    ]);
  });

  test("are a new reason with each other status, error, field, reason and number of further fields", async () => {
    const { activity, write } = await startRejects();
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
    const found = await activity.rejects(all);
    expect(found.map(({ count }) => count)).toEqual(reasons.map(() => 1));
    expect(new Set(found.map(({ id }) => id)).size).toBe(reasons.length);
    const [own] = await activity.rejects({ ...all, field: "__proto__" });
    expect(Object.entries(own?.fields ?? {})).toEqual([["__proto__", "unknown field"]]);
  });

  test("keep the latest requests per key and reason: a flood displaces no other reason or key", async () => {
    const { activity, write } = await startRejects();
    await write(
      rejectsOf([1], START),
      rejectsOf([2], START, { keyId: "key-2", reason: rateLimited }),
    );
    for (let from = 100; from < 13_100; from += 1_000) {
      const numbers = Array.from({ length: 1_000 }, (_, index) => from + index);
      await write(rejectsOf(numbers, START, { reason: rateLimited }));
    }
    const [flood, lonely] = await activity.rejects(all);
    const ids = Array.from({ length: REQUESTS_PER_REASON_KEPT }, (_, n) => requestIdOf(13_099 - n));
    expect(flood?.count).toBe(13_001);
    expect(flood?.latest.map(({ request_id }) => request_id)).toEqual([...ids, requestIdOf(2)]);
    expect(lonely).toMatchObject({ ...sideIsRequired, count: 1 });
    expect(lonely?.latest).toHaveLength(1);
  });

  test("are limited to a number of reasons per desk; the least recent are dropped", async () => {
    const { activity, write } = await startRejects();
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
    const found = await activity.rejects(all);
    expect(found).toHaveLength(REJECT_REASONS_KEPT);
    expect(found[0]).toMatchObject({ ...sideIsRequired, count: 2 });
    expect(await activity.rejects({ ...all, field: "made-up-2" })).toEqual([]);
    expect(await activity.rejects({ ...all, field: "made-up-3" })).toHaveLength(1);
    expect(await activity.rejects({ ...all, deskId: 2 })).toHaveLength(1);
    // If it comes again, it starts again.
    await write(ofTenKeys(2, 1_000));
    expect(await activity.rejects({ ...all, field: "made-up-2" })).toMatchObject([{ count: 1 }]);
  });

  test("of a key that invents field names displace no other key's", async () => {
    const { activity, write } = await startRejects();
    await write(rejectsOf([1], START, { keyId: "key-2" }));
    for (let from = 10; from < 10 + REJECT_REASONS_KEPT; from += 100) {
      await write(...Array.from({ length: 100 }, (_, index) => madeUp(from + index)));
    }
    const found = await activity.rejects(all);
    expect(found).toHaveLength(REJECT_REASONS_PER_KEY_KEPT + 1);
    expect(found[0]?.fields).toEqual({ [`made-up-${9 + REJECT_REASONS_KEPT}`]: "unknown field" });
    expect(found.at(-1)).toMatchObject({ ...sideIsRequired, keyIds: ["key-2"] });
  });

  test("are found by key, status, field and reason, in pages", async () => {
    const { activity, write } = await startRejects();
    const other = fieldsOf({ side: "required", price: "must be a number" });
    await write(
      rejectsOf([1], START),
      rejectsOf([2], START, { reason: other, keyId: "key-2" }),
      rejectsOf([3, 4], START, { reason: rateLimited }),
      rejectsOf([5], START, { reason: rateLimited, keyId: "key-2" }),
    );
    const found = async (query: object) =>
      (await activity.rejects({ ...all, ...query })).map(({ latest }) =>
        latest.map(({ request_id }) => Number(request_id.slice(-12))),
      );
    expect(await found({})).toEqual([[5, 4, 3], [2], [1]]);
    expect(await found({ keyId: "key-1" })).toEqual([[4, 3], [1]]);
    expect(await found({ keyId: "key-3" })).toEqual([]);
    expect(await found({ status: 422 })).toEqual([[2], [1]]);
    expect(await found({ field: "side" })).toEqual([[2], [1]]);
    expect(await found({ field: "price", status: 422, keyId: "key-2" })).toEqual([[2]]);
    expect(await found({ field: "price", keyId: "key-1" })).toEqual([]);
    expect(await found({ reason: "0".repeat(16) })).toEqual([]);
    expect(await found({ limit: 1, requestsMax: 1 })).toEqual([[5]]);
    expect(await found({ before: requestIdOf(5), limit: 1 })).toEqual([[2]]);
    expect(await found({ before: requestIdOf(1) })).toEqual([]);
    const [{ count, keyIds } = {}] = await activity.rejects({ ...all, keyId: "key-1" });
    expect({ count, keyIds }).toEqual({ count: 2, keyIds: ["key-1"] });
  });

  test("are counted for the last hours, and without a limit for all time", async () => {
    const { activity, write } = await startRejects();
    for (let age = REJECT_HOURS_KEPT + 1; age >= 0; age -= 1) {
      const number = (REJECT_HOURS_KEPT + 1 - age) * HOUR_MS;
      await write(rejectsOf([number], START, { count: 10 }));
    }
    await write(rejectsOf([1], START, { reason: rateLimited }));
    const now = START + (REJECT_HOURS_KEPT + 1) * HOUR_MS + 5;
    const since = async (ageH: number) =>
      (await activity.rejects({ ...all, from: now - ageH * HOUR_MS })).map(({ count }) => count);
    expect(await since(0)).toEqual([10]);
    expect(await since(2)).toEqual([30]);
    expect(await since(REJECT_HOURS_KEPT - 1)).toEqual([REJECT_HOURS_KEPT * 10]);
    // Older hours are dropped.
    expect(await since(REJECT_HOURS_KEPT + 1)).toEqual([REJECT_HOURS_KEPT * 10, 1]);
    const total = (await activity.rejects(all)).map(({ count }) => count);
    expect(total).toEqual([(REJECT_HOURS_KEPT + 2) * 10, 1]);
  });
}

async function startRejects() {
  const { activity } = await start();
  return {
    activity,
    write: async (...rejects: ReturnType<typeof rejectsOf>[]) =>
      activity.write({ minutes: [], rejects, repeats: [], differing: [] }),
  };
}

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

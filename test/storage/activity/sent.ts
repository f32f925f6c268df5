/** What requests sent that stored nothing. */
import { expect, test } from "bun:test";
import {
  DIFFERING_PER_SIGNAL_KEPT,
  DIFFERING_SENT_KEPT,
  type DifferingValues,
  REJECTED_KEPT,
  type RejectedBody,
} from "../../../src/domain/activity/sent.ts";
import { ADMIN } from "../../../src/domain/storage/author.ts";
import {
  batchOf,
  minuteOf,
  rejectsOf,
  requestIdOf,
  sideIsRequired,
} from "../../domain/_activity.ts";
import { START, start } from "../start.ts";

const KEY = `sbk_${"0123456789abcdef".repeat(4)}`;

export function sentTests(): void {
  test("is kept with the reason, and without keys, for the list and for the page of the reason", async () => {
    const { activity } = await start();
    const sent = `{"side":"${KEY}","client_signal_id":"order 1"}`;
    await activity.write({ ...batchOf(rejectsOf([1, 2], START)), bodies: [bodyOf(1, { sent })] });
    const kept = {
      request_id: requestIdOf(1),
      client_signal_id: "order 1",
      body: '{"side":"sbk_…","client_signal_id":"order 1"}',
      body_bytes: sent.length,
    };
    const { moreFields, ...reason } = sideIsRequired;
    expect(await activity.sentRejects(1, 10)).toEqual([
      {
        ...kept,
        desk_id: 1,
        key_id: "key-1",
        at: START + 1,
        message: null,
        ...reason,
        more_fields: moreFields,
      },
    ]);
    const [rejects] = await activity.rejects({
      deskId: 1,
      since: { width: "day", from: START },
      limit: 1,
    });
    const of = { deskId: 1, reason: rejects?.id ?? "", keyId: null };
    const none = { client_signal_id: null, body: null, body_bytes: null };
    expect(await activity.rejected(of, 10)).toMatchObject([
      { request_id: requestIdOf(2), ...none },
      kept,
    ]);
  });

  test("is kept of a desk's latest rejected requests, which displace no other desk's", async () => {
    const { activity } = await start();
    const write = (...bodies: RejectedBody[]) => activity.write({ ...batchOf(), bodies });
    await write(bodyOf(1), bodyOf(2, { deskId: 2 }));
    for (let from = 10; from < 10 + 2 * REJECTED_KEPT; from += 50) {
      await write(...Array.from({ length: 50 }, (_, index) => bodyOf(from + index)));
    }
    const ids = async (deskId: number | null, limit = 1_000) =>
      (await activity.sentRejects(deskId, limit)).map(({ request_id }) => request_id);
    const latest = Array.from({ length: REJECTED_KEPT }, (_, index) =>
      requestIdOf(9 + 2 * REJECTED_KEPT - index),
    );
    expect(await ids(1)).toEqual(latest);
    expect(await ids(2)).toEqual([requestIdOf(2)]);
    expect(await ids(null)).toEqual([...latest, requestIdOf(2)]);
    expect(await ids(null, 2)).toEqual(latest.slice(0, 2));
  });

  test("by duplicates that differ is kept per signal and desk, the latest first", async () => {
    const { activity } = await start();
    const write = (...values: DifferingValues[]) => activity.write({ ...batchOf(), values });
    const many = (signalId: string, from: number, count: number) =>
      Array.from({ length: count }, (_, index) => valuesOf(signalId, from + index));
    await write(valuesOf("a", 1), valuesOf("b", 2, { deskId: 2 }));
    await write(...many("a", 10, 2 * DIFFERING_PER_SIGNAL_KEPT));
    const prices = async (deskId: number, signalId: string) =>
      (await activity.sentDuplicates(deskId, signalId)).map(({ values }) => values.price);
    const latest = Array.from({ length: DIFFERING_PER_SIGNAL_KEPT }, (_, index) => 49 - index);
    expect(await prices(1, "a")).toEqual(latest);
    expect(await prices(2, "a")).toEqual([]);
    expect(await activity.sentDuplicates(2, "b")).toEqual([
      {
        request_id: requestIdOf(2),
        key_id: "key-1",
        at: START + 2,
        values: { price: 2, symbol: "a sbk_…" },
      },
    ]);
    expect(await activity.sentRejects(null, 10)).toEqual([]);
    for (let number = 0; number < DIFFERING_SENT_KEPT; number += 500) {
      const others = Array.from({ length: 500 }, (_, index) =>
        valuesOf(`c${number + index}`, 100 + number + index),
      );
      await write(...others);
    }
    expect(await prices(1, "a")).toEqual([]);
    expect(await prices(1, "c0")).toEqual([100]);
    expect(await prices(2, "b")).toEqual([2]);
  });

  test("is deleted when a desk keeps none, which the audit says, and no later one is kept", async () => {
    const { activity, registry, audit } = await start();
    await activity.write(both(10));
    expect((await registry.getDesk("alpha")).keeps_sent).toBe(true);
    expect(await registry.keepSent("alpha", false, ADMIN)).toEqual({ changed: true });
    expect(await registry.keepSent("alpha", false, ADMIN)).toEqual({ changed: false });
    expect((await registry.getDesk(1)).keeps_sent).toBe(false);
    // Of a batch that was on its way.
    await activity.write(both(20));
    await activity.forgetSent(1);
    await activity.write(both(30));
    const kept = async () => [
      (await activity.sentRejects(1, 10)).length,
      (await activity.sentDuplicates(1, "a")).length,
      (await activity.sentRejects(2, 10)).length,
    ];
    expect(await kept()).toEqual([0, 0, 3]);
    // They are counted.
    const counted = await activity.rejects({
      deskId: 1,
      since: { width: "day", from: START },
      limit: 1,
    });
    expect(counted).toMatchObject([{ count: 3 }]);
    await registry.keepSent("alpha", true, ADMIN);
    await activity.write(both(40));
    expect(await kept()).toEqual([1, 1, 4]);
    const actions = (await audit.list({ desk: "alpha", limit: 2 })).map(({ action }) => action);
    expect(actions).toEqual(["desk.sent_kept", "desk.sent_forgotten"]);
  });

  test("is deleted with the next batch if the server ended before it was", async () => {
    const { activity, registry } = await start();
    await activity.write({ ...batchOf(), bodies: [bodyOf(1)] });
    await registry.keepSent("alpha", false, ADMIN);
    await activity.write(batchOf(minuteOf(START)));
    expect(await activity.sentRejects(1, 10)).toEqual([]);
  });
}

const both = (number: number) => ({
  ...batchOf(rejectsOf([number], START)),
  bodies: [bodyOf(number), bodyOf(number + 1, { deskId: 2 })],
  values: [valuesOf("a", number)],
});

function bodyOf(
  number: number,
  { deskId = 1, sent = "{}" }: { deskId?: number; sent?: string } = {},
): RejectedBody {
  const body = Buffer.from(sent);
  return {
    ...ownerOf(number, deskId),
    answer: { ...sideIsRequired, message: null },
    clientSignalId: null,
    start: body,
    bytes: body.length,
  };
}

function valuesOf(
  signalId: string,
  number: number,
  { deskId = 1 }: { deskId?: number } = {},
): DifferingValues {
  return { ...ownerOf(number, deskId), signalId, values: { price: number, symbol: `a ${KEY}` } };
}

function ownerOf(number: number, deskId: number) {
  return { deskId, keyId: "key-1", requestId: requestIdOf(number), at: START + number };
}

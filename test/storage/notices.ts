/** Where notices go, their queue, and which troubles last. */
import { expect, test } from "bun:test";
import type { Notice } from "../../src/domain/notice/notice.ts";
import { ADMIN } from "../../src/domain/storage/author.ts";
import {
  type NewPlace,
  NOTICES_PER_HOUR_MAX,
  PLACES_MAX,
} from "../../src/domain/storage/notices.ts";
import { NotFoundError, SignedOutError } from "../../src/lib/errors.ts";
import { DAY_MS, HOUR_MS, MINUTE_MS } from "../../src/lib/text/time.ts";
import { ALICE, BOB, failure, reason, START, start, UNKNOWN_ID, what } from "./start.ts";

const sealed = new Uint8Array([1, 2, 3]);
const webhook: NewPlace = {
  desk: "alpha",
  destination: "webhook",
  shown: "alerts.example.com/…4f2a",
  sealed,
  kinds: null,
};

const about = (deskId: number | null, change: Partial<Notice> = {}): Notice => ({
  kind: "storage",
  deskId,
  subject: "",
  phase: "begins",
  title: "Signals are not being stored",
  text: "The disk is full.",
  path: "/",
  ...change,
});

export function noticesTests(): void {
  test("a place has no secrets when it is listed, and its sender gets them", async () => {
    const { notices, alpha, open, close } = await start();
    const added = await notices.addPlace({ ...webhook, kinds: ["storage", "silence"] }, ADMIN);
    expect(added).toEqual({
      id: added.id,
      desk: "alpha",
      destination: "webhook",
      shown: "alerts.example.com/…4f2a",
      kinds: ["storage", "silence"],
      by_admin: true,
      created_at: START,
    });
    await close();
    const again = (await open()).notices;
    expect(await again.listPlaces("alpha")).toEqual([added]);
    expect(await again.findPlace(added.id)).toEqual(added);
    const [place] = await again.sealedPlaces();
    expect({ ...place, sealed: [...(place?.sealed ?? [])] }).toEqual({
      ...added,
      deskId: alpha.deskId,
      sealed: [1, 2, 3],
    });
  });

  test("places of desks and of the operator do not see one another", async () => {
    const { notices } = await start();
    const alphas = await notices.addPlace(webhook, ADMIN);
    const operators = await notices.addPlace({ ...webhook, desk: null }, ADMIN);
    expect(await notices.listPlaces("alpha")).toEqual([alphas]);
    expect(await notices.listPlaces("beta")).toEqual([]);
    expect(await notices.listPlaces(null)).toEqual([operators]);
    expect(await notices.findPlace(alphas.id, { desk: "beta" })).toBeNull();
    expect(await notices.findPlace(operators.id, { desk: "alpha" })).toBeNull();
    expect(
      await failure(() => notices.removePlace(operators.id, { desk: "alpha" }, ADMIN)),
    ).toBeInstanceOf(NotFoundError);
    expect(await notices.listPlaces(null)).toHaveLength(1);
  });

  test("a place and its end are in the audit; nothing is sent there any more, and its secrets are gone", async () => {
    const started = await start();
    const { notices, alpha } = started;
    const { id } = await notices.addPlace({ ...webhook, kinds: ["storage"] }, ADMIN);
    expect(await notices.enqueue(about(alpha.deskId))).toBe(1);
    await notices.removePlace(id.toLowerCase(), {}, ADMIN);
    const detail = "Webhook, alerts.example.com/…4f2a (storage)";
    expect(await what(started, 2)).toEqual([
      [null, "desk.notices_removed", null, detail],
      [null, "desk.notices_added", null, detail],
    ]);
    expect(await notices.due(9)).toEqual([]);
    expect(await notices.sealedPlaces()).toEqual([]);
    expect(await notices.enqueue(about(alpha.deskId))).toBe(0);
    expect(await failure(() => notices.removePlace(id, {}, ADMIN))).toBeInstanceOf(NotFoundError);
    expect(await failure(() => notices.removePlace(UNKNOWN_ID, {}, ADMIN))).toBeInstanceOf(
      NotFoundError,
    );
  });

  test(`a desk has at most ${PLACES_MAX} places, and another one after one was removed`, async () => {
    const { notices } = await start();
    for (let n = 1; n < PLACES_MAX; n += 1) await notices.addPlace(webhook, ADMIN);
    const { id } = await notices.addPlace(webhook, ADMIN);
    expect(await reason(() => notices.addPlace(webhook, ADMIN))).toContain(
      `Notices go to ${PLACES_MAX} places already`,
    );
    await notices.addPlace({ ...webhook, desk: "beta" }, ADMIN);
    await notices.removePlace(id, {}, ADMIN);
    await notices.addPlace(webhook, ADMIN);
  });

  test("a member names addresses of the desk's members only, and adds nothing for others", async () => {
    const { notices, join, members } = await start();
    const alice = await join();
    const email = { ...webhook, destination: "email", sealed: null } as const;
    for (const shown of [BOB, "carol@example.com"]) {
      expect(await reason(() => notices.addPlace({ ...email, shown }, alice))).toContain(
        `${shown} is not the address of a member of this desk`,
      );
    }
    await join(BOB, "beta");
    expect(await reason(() => notices.addPlace({ ...email, shown: BOB }, alice))).toContain(BOB);
    const place = await notices.addPlace({ ...email, shown: ALICE }, alice);
    expect(place.by_admin).toBe(false);
    for (const desk of ["beta", null]) {
      expect(await failure(() => notices.addPlace({ ...webhook, desk }, alice))).toBeInstanceOf(
        NotFoundError,
      );
    }
    const old = { ...alice, signedOutAt: -1 };
    expect(await failure(() => notices.addPlace(webhook, old))).toBeInstanceOf(SignedOutError);
    expect(await notices.listPlaces("alpha")).toEqual([place]);
    // A member who was removed gets no more notices.
    await members.remove("alpha", ALICE, ADMIN);
    expect(await notices.listPlaces("alpha")).toEqual([]);
  });

  test("a notice waits for each place of its desk that wants its kind", async () => {
    const { notices, alpha, beta, registry } = await start();
    const all = await notices.addPlace(webhook, ADMIN);
    const some = await notices.addPlace({ ...webhook, kinds: ["silence"] }, ADMIN);
    await notices.addPlace({ ...webhook, desk: "beta" }, ADMIN);
    const operators = await notices.addPlace({ ...webhook, desk: null }, ADMIN);
    expect(await notices.enqueue(about(alpha.deskId))).toBe(1);
    expect(await notices.enqueue(about(alpha.deskId, { kind: "silence" }))).toBe(2);
    expect(await notices.enqueue(about(null))).toBe(1);
    const due = (await notices.due(9)).map(({ placeId, notice }) => `${placeId} ${notice.kind}`);
    expect(due.toSorted()).toEqual(
      [`${all.id} storage`, `${some.id} silence`, `${operators.id} storage`].toSorted(),
    );
    await registry.archiveDesk("beta", true);
    expect(await notices.enqueue(about(beta.deskId))).toBe(0);
    expect((await notices.sealedPlaces()).map(({ desk }) => desk)).not.toContain("beta");
  });

  test("each place gets its notices one after another, in their order", async () => {
    const { notices, alpha, time } = await start();
    await notices.addPlace(webhook, ADMIN);
    for (const phase of ["begins", "reminder", "ends"] as const) {
      await notices.enqueue(about(alpha.deskId, { phase, title: phase }));
    }
    const phases: string[] = [];
    for (;;) {
      const [next, ...others] = await notices.due(9);
      expect(others).toEqual([]);
      if (next === undefined) break;
      expect(next).toMatchObject({ attempts: 0, isTest: false, createdAt: START });
      phases.push(next.notice.phase);
      await notices.settle(next.id, { state: "delivered", answer: "answered 204" });
    }
    expect(phases).toEqual(["begins", "reminder", "ends"]);
    expect(time.at).toBe(START);
  });

  test("an attempt that failed is made again when its time has come, until it was the last one", async () => {
    const { notices, alpha, time } = await start();
    const place = await notices.addPlace(webhook, ADMIN);
    await notices.enqueue(about(alpha.deskId));
    const [{ id } = { id: "" }] = await notices.due(9);
    const retryAt = START + MINUTE_MS;
    await notices.settle(id, { state: "waiting", answer: "answered 500", retryAt });
    expect(await notices.due(9)).toEqual([]);
    expect(await notices.lastDeliveries(place.id, 9)).toEqual([
      {
        id,
        created_at: START,
        title: "Signals are not being stored",
        state: "waiting",
        attempts: 1,
        tried_at: START,
        answer: "answered 500",
      },
    ]);
    time.at = retryAt;
    expect(await notices.due(9)).toMatchObject([{ id, attempts: 1 }]);
    await notices.settle(id, { state: "failed", answer: "answered 501" });
    expect(await notices.due(9)).toEqual([]);
    expect(await notices.findDelivery(id)).toMatchObject({
      state: "failed",
      attempts: 2,
      answer: "answered 501",
    });
    expect(await notices.findDelivery(UNKNOWN_ID)).toBeNull();
  });

  test(`a place gets ${NOTICES_PER_HOUR_MAX} notices an hour; the next one says how many were left out`, async () => {
    const { notices, alpha, time } = await start();
    const place = await notices.addPlace(webhook, ADMIN);
    for (let n = 0; n < NOTICES_PER_HOUR_MAX; n += 1) {
      expect(await notices.enqueue(about(alpha.deskId))).toBe(1);
    }
    for (let n = 0; n < 3; n += 1) expect(await notices.enqueue(about(alpha.deskId))).toBe(0);
    // A test is none of them.
    await notices.enqueueTest(place.id, about(alpha.deskId));
    time.at += HOUR_MS + 1;
    await notices.enqueue(about(alpha.deskId, { title: "the next" }));
    await notices.enqueue(about(alpha.deskId, { title: "the one after" }));
    const counts: Record<string, number> = {};
    for (let [next] = await notices.due(1); next !== undefined; [next] = await notices.due(1)) {
      counts[next.notice.title] = next.notice.suppressed;
      await notices.settle(next.id, { state: "delivered", answer: "" });
    }
    expect(counts).toEqual({
      "Signals are not being stored": 0,
      "the next": 3,
      "the one after": 0,
    });
  });

  test("tests are limited, too", async () => {
    const { notices } = await start();
    const { id } = await notices.addPlace(webhook, ADMIN);
    for (let n = 0; n < NOTICES_PER_HOUR_MAX; n += 1) await notices.enqueueTest(id, about(null));
    expect(await reason(() => notices.enqueueTest(id, about(null)))).toContain(
      "tests within an hour",
    );
    expect(await notices.due(9)).toMatchObject([{ isTest: true, notice: { kind: "test" } }]);
  });

  test("old deliveries are forgotten, those that wait are not", async () => {
    const { notices, alpha, time } = await start();
    const place = await notices.addPlace(webhook, ADMIN);
    const two = ["arrived", "waits"];
    for (const title of two) await notices.enqueue(about(alpha.deskId, { title }));
    const [first] = await notices.due(1);
    await notices.settle(first?.id ?? "", { state: "delivered", answer: "" });
    time.at += DAY_MS;
    await notices.forgetDeliveries(START);
    expect(await notices.lastDeliveries(place.id, 9)).toHaveLength(2);
    await notices.forgetDeliveries(START + 1);
    expect(await notices.lastDeliveries(place.id, 9)).toMatchObject([{ title: "waits" }]);
  });

  test("troubles last until they end, by kind, desk and subject", async () => {
    const { notices, alpha, open, close } = await start();
    const trouble = {
      kind: "rejects",
      deskId: alpha.deskId,
      subject: "",
      beganAt: 1,
      toldAt: 2,
      count: 3,
    } as const;
    const other = { ...trouble, subject: "key 1" };
    const operators = { ...trouble, kind: "disk", deskId: null } as const;
    for (const one of [trouble, other, operators]) await notices.saveTrouble(one);
    await notices.saveTrouble({ ...trouble, toldAt: 9, count: 0 });
    await close();
    const again = (await open()).notices;
    const all = await again.listTroubles();
    expect(all).toHaveLength(3);
    expect(all).toEqual(
      expect.arrayContaining([{ ...trouble, toldAt: 9, count: 0 }, other, operators]),
    );
    await again.endTrouble(trouble);
    await again.endTrouble(trouble);
    expect(await again.listTroubles()).toHaveLength(2);
  });
}

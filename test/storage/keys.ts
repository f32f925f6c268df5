/** Keys. */
import { expect, test } from "bun:test";
import { EVERY_DESK } from "../../src/domain/desk/desk.ts";
import { UserError } from "../../src/lib/errors.ts";
import { ADMIN } from "../../src/domain/storage/author.ts";
import { DAY_MS, HOUR_MS } from "../../src/lib/text/time.ts";
import { failure, reason, start, UNKNOWN_ID, what } from "./start.ts";

export function keysTests(): void {
  test("a key is minted once, with 256 random bits, and is found by its id or by itself", async () => {
    const { mint, registry, time } = await start();
    const minted = [];
    for (let index = 0; index < 50; index += 1) {
      const label = `bot-${index}`;
      minted.push(await mint({ label, expiresInMs: 500 }));
    }
    expect(new Set(minted.map(({ key }) => key)).size).toBe(50);
    for (const { key, record } of minted) {
      expect(key).toMatch(/^sbk_[0-9a-f]{64}$/);
      expect(record).toMatchObject({ last4: key.slice(-4), desk: "alpha", last_used_at: null });
      expect(record).toMatchObject({ created_at: time.at, expires_at: time.at + 500 });
      expect(await registry.findKey(record.id.toLowerCase())).toEqual(record);
      expect(await registry.findKey(key)).toBeNull();
      expect(await registry.findKeyItself(key)).toEqual(record);
    }
    expect(await registry.findKeyItself(`sbk_${"0".repeat(64)}`)).toBeNull();
    expect(JSON.stringify(await registry.listKeys(null))).not.toContain(minted[0]?.key ?? "");
  });

  test("lists are oldest first, pages newest first, by desk and state", async () => {
    const { mint, registry, time, alpha } = await start();
    const ids = [alpha.keyId];
    for (let index = 0; index < 6; index += 1) {
      time.at += 1;
      const expiresInMs = index % 2 === 0 ? HOUR_MS : null;
      ids.push((await mint({ label: "twin", expiresInMs })).record.id);
    }
    await registry.revokeKey(ids[2] ?? "", {}, ADMIN);
    const all = await registry.listKeys("alpha");
    expect(all.map(({ id }) => id)).toEqual(ids);
    expect(await registry.listKeys(null)).toHaveLength(8);
    time.at += HOUR_MS;
    const page = async (state: "active" | "ended", limit: number, before: string | null = null) =>
      (await registry.pageKeys({ desk: "alpha", state, limit, before })).map(({ id }) => id);
    expect(await page("active", 9)).toEqual([ids[6], ids[4], ids[0]].map(String));
    expect(await page("ended", 9)).toEqual([ids[5], ids[3], ids[2], ids[1]].map(String));
    expect(await page("ended", 2, ids[3])).toEqual([ids[2], ids[1]].map(String));
    const [, , , , fourth] = all;
    if (fourth === undefined) throw new Error("no key");
    expect(await registry.hasNamesake(fourth)).toBe(true);
    await registry.revokeKey(ids[6] ?? "", {}, ADMIN);
    expect(await registry.hasNamesake(fourth)).toBe(false);
  });

  test("keys that expire before a time are found, but no rotated, ended or other desk's ones", async () => {
    const { mint, registry, time } = await start();
    const ids: string[] = [];
    for (const [desk, expiresInMs] of [
      ["alpha", 3 * HOUR_MS],
      ["alpha", 2 * HOUR_MS],
      ["alpha", HOUR_MS],
      ["alpha", 2 * HOUR_MS],
      ["alpha", 2 * HOUR_MS],
      ["alpha", null],
      ["beta", 2 * HOUR_MS],
    ] as const) {
      ids.push((await mint({ desk, expiresInMs })).record.id);
    }
    await registry.rotateKey(ids[3] ?? "", { overlapMs: HOUR_MS, expiresInMs: DAY_MS }, ADMIN);
    await registry.revokeKey(ids[4] ?? "", {}, ADMIN);
    time.at += HOUR_MS;
    const before = async (at: number) =>
      (await registry.expiringKeys("alpha", time.at + at)).map(({ id }) => id);
    expect(await before(HOUR_MS)).toEqual([]);
    expect(await before(2 * HOUR_MS)).toEqual([ids[1]].map(String));
    expect(await before(2 * HOUR_MS + 1)).toEqual([ids[1], ids[0]].map(String));
    const { record: reader } = await mint({ scope: "read", desk: null, expiresInMs: 1 });
    const all = await registry.expiringKeys(EVERY_DESK, time.at + 2 * HOUR_MS + 1);
    const expected = [reader.id, ids[1], ids[6], ids[0]].map(String);
    expect(all.map(({ id }) => id).toSorted()).toEqual(expected.toSorted());
    const found = await registry.findKeys([reader.id, UNKNOWN_ID, ids[0] ?? "", reader.id]);
    expect(found.map(({ id }) => id)).toEqual([reader.id, ids[0]].map(String));
    expect(await registry.findKeys([])).toEqual([]);
    await registry.archiveDesk("alpha", true);
    expect(await before(DAY_MS)).toEqual([]);
  });

  test("revoking again keeps the first time", async () => {
    const { registry, time, alpha } = await start();
    const { record, changed } = await registry.revokeKey(alpha.keyId, {}, ADMIN);
    expect([changed, record.revoked_at]).toEqual([true, time.at]);
    time.at += DAY_MS;
    const again = await registry.revokeKey(alpha.keyId, {}, ADMIN);
    expect(again).toEqual({ record, changed: false });
  });

  test("a key is relabelled in any state, with its earlier label in the audit", async () => {
    const started = await start();
    const { registry, alpha } = started;
    const relabel = (label: string) => registry.relabelKey(alpha.keyId, label, {}, ADMIN);
    expect(await relabel("bot-7")).toMatchObject({ changed: true, record: { label: "bot-7" } });
    expect(await relabel("bot-7")).toMatchObject({ changed: false, record: { label: "bot-7" } });
    expect((await registry.findKey(alpha.keyId))?.label).toBe("bot-7");
    for (const bad of ["", "x".repeat(101), "a\u0000b", "a\u202eb"]) {
      expect(await failure(() => relabel(bad))).toBeInstanceOf(UserError);
    }
    await registry.revokeKey(alpha.keyId, {}, ADMIN);
    await relabel("old bot");
    expect(await what(started, 3)).toEqual([
      [null, "key.relabelled", alpha.keyId, 'it was "bot-7"'],
      [null, "key.revoked", alpha.keyId, null],
      [null, "key.relabelled", alpha.keyId, "it had none"],
    ]);
  });

  test("rotation keeps desk, label and lifetime, and the old key ends after the overlap or sooner", async () => {
    const { mint, registry, time } = await start();
    for (const expiresInMs of [90_000, null]) {
      let { record } = await mint({ label: "bot", expiresInMs });
      for (const elapsedMs of [10_000, 3_000, 88_000]) {
        time.at += elapsedMs;
        const rotated = await registry.rotateKey(record.id, { overlapMs: 5_000 }, ADMIN);
        const overlap = expiresInMs === null ? 5_000 : Math.min(5_000, expiresInMs - elapsedMs);
        expect(rotated.old.expires_at).toBe(time.at + overlap);
        const expires_at = expiresInMs === null ? null : time.at + expiresInMs;
        expect(rotated.minted.record).toMatchObject({ desk: "alpha", label: "bot", expires_at });
        expect(rotated.old.successor_id).toBe(rotated.minted.record.id);
        ({ record } = rotated.minted);
      }
      expect(record.successor_id).toBeNull();
      const told = { overlapMs: 0, expiresInMs: 7 };
      const last = await registry.rotateKey(record.id, told, ADMIN);
      expect(last.minted.record.expires_at).toBe(time.at + 7);
    }
  });

  test("a key keeps its limits, through rotations too, and the audit has them", async () => {
    const started = await start();
    const { mint, registry, server } = started;
    const limits = {
      networks: ["203.0.113.0/24", "::1"],
      sources: ["venue_1"],
      types: null,
      rate: 5,
    };
    const { key, record } = await mint({ limits: { ...limits, types: [] } });
    expect(record.limits).toEqual(limits);
    const { minted } = await registry.rotateKey(record.id, { overlapMs: HOUR_MS }, ADMIN);
    expect(minted.record.limits).toEqual(limits);
    expect((await registry.findKey(record.id))?.limits).toEqual(limits);
    for (const one of [key, minted.key]) {
      expect(JSON.parse((await server.findOwner(one))?.limits ?? "")).toEqual(limits);
    }
    const words = "limited to networks 203.0.113.0/24, ::1; sources venue_1; 5 requests per second";
    expect((await what(started, 3)).map(([, action, , detail]) => [action, detail])).toEqual([
      ["key.rotated", `its successor is ${minted.record.id}`],
      ["key.created", `successor of ${record.id}; ${words}`],
      ["key.created", words],
    ]);
    const rate = { scope: "read", desk: null, limits: { rate: 1 } } as const;
    const reader = await mint(rate);
    expect(JSON.parse((await server.findReader(reader.key))?.limits ?? "")).toMatchObject({
      rate: 1,
    });
    expect((await mint({ limits: { networks: [], rate: null } })).record.limits).toBeNull();
  });

  test("a key with a limit that cannot hold is not minted", async () => {
    const { mint, registry } = await start();
    const keys = await registry.listKeys(null);
    for (const change of [
      { limits: { networks: ["10.0.0.0/33"] } },
      { limits: { networks: Array.from({ length: 21 }, (_, n) => `10.0.0.${n}`) } },
      { limits: { sources: ["venue_9"] } },
      { limits: { types: ["bond"] } },
      { limits: { rate: 0 } },
      { scope: "read", limits: { sources: ["venue_1"] } },
    ] as const) {
      expect(await failure(() => mint(change))).toBeInstanceOf(UserError);
    }
    expect(await registry.listKeys(null)).toEqual(keys);
  });

  test("a key that has a successor or has ended is not rotated", async () => {
    const { registry, alpha } = await start();
    const rotate = (id: string) => registry.rotateKey(id, { overlapMs: HOUR_MS }, ADMIN);
    const { record } = (await rotate(alpha.keyId)).minted;
    expect(await failure(() => rotate(alpha.keyId))).toMatchObject({
      message: `Key ${alpha.keyId} has been rotated already, and its successor is ${record.id}: rotate that one`,
      next: `key rotate ${record.id}`,
    });
    await registry.revokeKey(record.id, {}, ADMIN);
    expect(await reason(() => rotate(record.id))).toContain("is revoked, so it cannot");
    expect(await registry.listKeys("alpha")).toHaveLength(2);
  });

  test("a key whose successor was revoked or has expired counts as not rotated", async () => {
    const { mint, registry, server, time } = await start();
    const { record } = await mint({ expiresInMs: 90 * DAY_MS });
    const { id } = record;
    const rotate = async (expiresInMs?: number) =>
      (await registry.rotateKey(id, { overlapMs: DAY_MS, expiresInMs }, ADMIN)).minted.record;
    const expiring = async () => [
      (await registry.expiringKeys("alpha", time.at + 7 * DAY_MS)).map((key) => key.id),
      (await server.figures({ now: time.at, desksMax: 0, keysMax: 0 })).keysExpiring,
    ];
    const revoked = await rotate();
    expect(await expiring()).toEqual([[], 0]);
    await registry.revokeKey(revoked.id, {}, ADMIN);
    expect(await expiring()).toEqual([[id], 1]);
    expect(await registry.findKey(id)).toMatchObject({ successor_id: null });
    const expired = await rotate(HOUR_MS);
    // The first rotation shortened the old key's own lifetime.
    expect((await registry.findKey(id))?.expires_at).toBe(time.at + DAY_MS);
    time.at += HOUR_MS;
    expect((await expiring())[0]).toEqual([id]);
    const last = await rotate();
    expect(last.expires_at).toBe(time.at + 90 * DAY_MS);
    expect(await expiring()).toEqual([[], 0]);
    expect(await registry.findKey(expired.id)).toMatchObject({ successor_id: null });
  });

  test("the successor of a key that was rotated twice is the last one", async () => {
    const { registry, alpha } = await start();
    const rotate = async (id: string) =>
      (await registry.rotateKey(id, { overlapMs: HOUR_MS }, ADMIN)).minted.record.id;
    const successorOf = async (id: string) => (await registry.findKey(id))?.successor_id;
    const second = await rotate(alpha.keyId);
    const third = await rotate(second);
    expect(await successorOf(alpha.keyId)).toBe(third);
    await registry.revokeKey(second, {}, ADMIN);
    expect(await successorOf(alpha.keyId)).toBe(third);
    await registry.revokeKey(third, {}, ADMIN);
    expect(await successorOf(alpha.keyId)).toBeNull();
    const fourth = await rotate(alpha.keyId);
    expect(await successorOf(alpha.keyId)).toBe(fourth);
  });

  test("rotated keys are found while they are used: lately, or later than their successor", async () => {
    const { append, registry, time, alpha } = await start();
    const use = (keyId: string) => append({}, { keyId });
    const found = async (desk: string | null = "alpha") =>
      (await registry.rotatedKeysInUse(desk)).map(({ id }) => id);
    await use(alpha.keyId);
    time.at += 2 * HOUR_MS;
    const rotation = { overlapMs: 3 * DAY_MS };
    const { id } = (await registry.rotateKey(alpha.keyId, rotation, ADMIN)).minted.record;
    expect(await found()).toEqual([]);
    time.at += HOUR_MS;
    await use(alpha.keyId);
    expect(await found()).toEqual([alpha.keyId]);
    expect([await found("beta"), await found(null)]).toEqual([[], []]);
    expect(await found(EVERY_DESK)).toEqual([alpha.keyId]);
    time.at += DAY_MS;
    expect(await found()).toEqual([alpha.keyId]);
    await use(id);
    expect(await found()).toEqual([]);
    await use(alpha.keyId);
    time.at += HOUR_MS - 1;
    await use(id);
    expect(await found()).toEqual([alpha.keyId]);
    time.at += 1;
    expect(await found()).toEqual([]);
    await use(alpha.keyId);
    await registry.revokeKey(id, {}, ADMIN);
    expect(await found()).toEqual([]);
  });

  test("a rotated key is found after its first use since, however soon that is", async () => {
    const { append, registry, time, alpha } = await start();
    const found = async () => (await registry.rotatedKeysInUse("alpha")).map(({ id }) => id);
    await append({}, { keyId: alpha.keyId });
    time.at += 1_000;
    await registry.rotateKey(alpha.keyId, { overlapMs: HOUR_MS }, ADMIN);
    expect(await found()).toEqual([]);
    time.at += 1_000;
    await append({}, { keyId: alpha.keyId });
    expect(await found()).toEqual([alpha.keyId]);
  });

  test("a desk's active keys are limited, and each can still be rotated once", async () => {
    const { mint, registry, time } = await start();
    await registry.createDesk("gamma", { ifMissing: false });
    await registry.limitKeys("gamma", 3);
    const mintOne = async (expiresInMs: number | null = null) =>
      (await mint({ desk: "gamma", expiresInMs })).record.id;
    const rotate = async (id: string) =>
      (await registry.rotateKey(id, { overlapMs: HOUR_MS, expiresInMs: null }, ADMIN)).minted.record
        .id;
    const active = async () =>
      (await registry.pageKeys({ desk: "gamma", state: "active", limit: 99 })).length;
    const isFull = async () => {
      const refusal = await failure(mintOne);
      expect(String(refusal)).toContain("has 3 of at most 3 active keys");
      const sentence = `${(refusal as UserError).message}.`;
      expect(await registry.mintObstacle("gamma")).toBe(sentence);
    };
    const first = await mintOne();
    expect(await registry.mintObstacle("gamma")).toBeNull();
    await mintOne(HOUR_MS);
    const third = await mintOne();
    await isFull();
    await registry.revokeKey(first, {}, ADMIN);
    const old = [await mintOne(), third];
    await isFull();
    time.at += HOUR_MS;
    old.push(await mintOne());
    await isFull();
    const successors: string[] = [];
    for (const id of old) successors.push(await rotate(id));
    expect(await active()).toBe(6);
    await isFull();
    const tooMany = await failure(() => rotate(successors[0] ?? ""));
    expect(tooMany).toMatchObject({
      message: expect.stringContaining("has 6 active keys, 3 of which were rotated"),
      next: "key revoke ID",
    });
    time.at += HOUR_MS;
    expect(await active()).toBe(3);
    await registry.limitKeys("gamma", 2);
    const lower = await failure(mintOne);
    expect(lower).toMatchObject({ next: "desk limit gamma --keys 6" });
    await rotate(successors[0] ?? "");
    expect(await active()).toBe(4);
  });
}

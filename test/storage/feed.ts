/** What readers of the feed need. */
import { describe, expect, test } from "bun:test";
import { AppError } from "../../src/domain/errors.ts";
import { newestSignal, newestSignalId } from "../../src/domain/signal/chunks.ts";
import { damagedSignal } from "../../src/domain/signal/hash.ts";
import { ADMIN } from "../../src/domain/storage/author.ts";
import { everySignal } from "../../src/domain/signal/stored-signal.ts";
import { DAY_MS, HOUR_MS, MINUTE_MS } from "../../src/lib/text/time.ts";
import { failure, inUse, start } from "./start.ts";

export function feedTests(): void {
  const forReading = { label: "reader", expiresInMs: null, scope: "read" } as const;

  test("a read key is found as a reader's alone, of one desk or of all, and stores nothing", async () => {
    const { server, registry, mint, alpha, append, time } = await start();
    const of = await mint(forReading);
    const all = await mint({ ...forReading, desk: null });
    const reader = { keyId: of.record.id, deskId: alpha.deskId, deskName: "alpha", ...inUse };
    expect(await server.findReader(of.key)).toEqual(reader);
    const ofAll = { keyId: all.record.id, deskId: null, deskName: null, ...inUse };
    expect(await server.findReader(all.key)).toEqual(ofAll);
    expect(await server.findOwner(of.key)).toBeNull();
    expect(await server.findReader(alpha.key)).toBeNull();
    expect(await failure(() => append({}, { keyId: of.record.id }))).toEqual(
      new AppError("unauthorized"),
    );
    await registry.revokeKey(all.record.id, {}, ADMIN);
    expect(await server.findReader(all.key)).toEqual({ ...ofAll, revoked_at: time.at });
  });

  test("a read key's last use is written once a minute, and its first one since a rotation at once", async () => {
    const { server, registry, append, mint, time } = await start();
    const { record } = await mint({ ...forReading, desk: null });
    const use = async (stepMs: number) => {
      time.at += stepMs;
      server.recordRead(record.id, time.at);
      // The use is before this signal in the queue.
      await append();
      return (await registry.findKey(record.id))?.last_used_at;
    };
    const first = time.at;
    expect(await use(0)).toBe(first);
    expect(await use(MINUTE_MS - 1)).toBe(first);
    expect(await use(1)).toBe(time.at);
    await registry.rotateKey(record.id, { overlapMs: HOUR_MS }, ADMIN);
    expect(await use(1)).toBe(time.at);
    expect((await registry.rotatedKeysInUse(null)).map(({ id }) => id)).toEqual([record.id]);
  });

  test("a running server reads what is stored, and tells of which desks", async () => {
    const { server, append, alpha, beta, stored } = await start();
    const first = await append();
    const second = await append({}, { deskId: beta.deskId, keyId: beta.keyId });
    expect(stored.flatMap((desks) => [...desks])).toEqual([alpha.deskId, beta.deskId]);
    await append({ client_signal_id: "a" });
    stored.length = 0;
    await append({ client_signal_id: "a" });
    expect(stored).toEqual([]);
    const query = { deskId: null, filter: everySignal, order: "oldest", limit: 2 } as const;
    const { signals } = await server.list(query);
    expect(signals.map(({ id }) => id)).toEqual([first.id, second.id]);
    expect((await server.get(null, second.id))?.id).toBe(second.id);
    expect(await server.get(alpha.deskId, second.id)).toBeNull();
    expect(await server.findDeskId("beta")).toBe(beta.deskId);
    expect(await server.findDeskId("gamma")).toBeNull();
  });

  test("a read key is listed, relabelled, rotated and revoked like others, with its audit", async () => {
    const { registry, mint, audit } = await start();
    for (const desk of ["alpha", null]) {
      const lasting = { ...forReading, expiresInMs: DAY_MS };
      const { key, record } = await mint({ ...lasting, desk });
      expect(key).toMatch(/^sbr_[0-9a-f]{64}$/);
      expect(record).toMatchObject({ scope: "read", desk, label: "reader" });
      expect(await registry.findKeyItself(key)).toEqual(record);
      expect(await registry.listKeys(null)).toContainEqual(record);
      await registry.relabelKey(record.id, "executor", {}, ADMIN);
      const { minted } = await registry.rotateKey(record.id, { overlapMs: HOUR_MS }, ADMIN);
      expect(minted.key).toMatch(/^sbr_/);
      expect(minted.record).toMatchObject({ scope: "read", desk, label: "executor" });
      const expiring = await registry.expiringKeys(desk, Number.MAX_SAFE_INTEGER);
      expect(expiring.map(({ id }) => id)).toContain(minted.record.id);
      expect((await registry.revokeKey(minted.record.id, {}, ADMIN)).changed).toBe(true);
      const entries = await audit.list({ desk: null, key: record.id, limit: 9 });
      expect(entries.map((entry) => [entry.action, entry.desk])).toEqual([
        ["key.rotated", desk],
        ["key.relabelled", desk],
        ["key.created", desk],
      ]);
    }
    const sending = { desk: "alpha", state: "active", scope: "send", limit: 9 } as const;
    expect((await registry.pageKeys(sending)).map(({ scope }) => scope)).toEqual(["send"]);
    const [overview] = await registry.listOverviews();
    expect(overview).toMatchObject({ name: "alpha", active_keys: 2, read_keys: 1 });
  });

  test("read keys of a desk count towards its limit; of all desks there are 100 at most", async () => {
    const { registry, mint } = await start();
    await registry.limitKeys("alpha", 2);
    await mint(forReading);
    const full = await failure(() => mint(forReading));
    expect(String(full)).toContain("has 2 of at most 2 active keys");
    for (let count = 0; count < 100; count += 1) {
      await mint({ ...forReading, desk: null });
    }
    const tooMany = await failure(() => mint({ ...forReading, desk: null }));
    expect(String(tooMany)).toContain(
      "There are already 100 active read keys for all desks: revoke one",
    );
  });
}

const all = { deskId: null } as const;

/** Three signals, of which the second is changed. */
async function damaged(assignment: (to: Awaited<ReturnType<typeof start>>) => string) {
  const started = await start();
  const { append, time, storage } = started;
  const ids: string[] = [];
  for (const client_signal_id of ["a", "b", "c"]) {
    time.at += 10;
    const fields = { price: 64_000, quantity: 1, signal_time: 5, direction: "long" } as const;
    ids.push((await append({ ...fields, client_signal_id, metadata: '{"a":1}' })).id);
  }
  const [first = "", second = "", third = ""] = ids;
  await storage.damage(`UPDATE signals SET ${assignment(started)} WHERE id = '${second}'`);
  return { ...started, first, second, third };
}

const changes: Readonly<Record<string, (started: Awaited<ReturnType<typeof start>>) => string>> = {
  desk_id: ({ beta }) => `desk_id = ${beta.deskId}`,
  key_id: ({ beta }) => `key_id = '${beta.keyId}'`,
  received_at: () => "received_at = received_at + 1",
  client_signal_id: () => "client_signal_id = 'B'",
  source: () => "source = 'venue_3'",
  type: () => "type = 'crypto'",
  symbol: () => "symbol = 'CTC/USDT'",
  side: () => "side = 'close'",
  direction: () => "direction = 'sell'",
  price: () => "price = 84000",
  quantity: () => "quantity = NULL",
  signal_time: () => "signal_time = 4",
  metadata: () => `metadata = '{"a":3}'`,
  hash: () => `hash = (SELECT other.hash FROM signals AS other ORDER BY seq LIMIT 1)`,
};

/** Signals that are not what was sent any more are not handed out. */
export function damageTests(): void {
  describe("a signal whose column was changed ends a list before it, and is an error alone", () => {
    test.each(Object.entries(changes))("%s", async (_name, assignment) => {
      const { server, list, signals, first, second, third, damagedIds } = await damaged(assignment);
      const before = await list(all);
      expect([before.signals.map(({ id }) => id), before.more]).toEqual([[first], first]);
      const error = damagedSignal(second);
      expect(error.code).toBe("damaged_signal");
      expect(error.message).toContain(second);
      const filter = everySignal;
      const rest = { ...all, filter, order: "oldest", after: first, limit: 9 } as const;
      expect(damagedIds).toEqual([]);
      for (const found of [
        () => list({ ...all, after: first }),
        () => list({ ...all, order: "newest", before: third }),
        () => signals.get(null, second),
        () => signals.find(null, second),
        () => server.list(rest),
        () => server.get(null, second),
      ]) {
        expect(await failure(found)).toEqual(error);
      }
      expect(damagedIds).toEqual([second, second]);
      const after = await list({ ...all, after: second });
      expect(after.signals.map(({ id }) => id)).toEqual([third]);
    });
  });

  test("a changed id is an error, too, which names one that a reader can continue after", async () => {
    const { list, first, third, second } = await damaged(() => "id = substr(id, 1, 25) || 'U'");
    const error = (await failure(() => list({ ...all, after: first }))) as AppError;
    expect(error.code).toBe("damaged_signal");
    const id = error.detail.signalId ?? "";
    expect(id.slice(0, 25)).toBe(second.slice(0, 25));
    expect((await list({ ...all, after: id })).signals.map((one) => one.id)).toEqual([third]);
  });

  test("the newest signal of a desk has no symbol if it is changed", async () => {
    const { registry, storage, third } = await damaged(() => "price = price");
    const latest = async () =>
      (await registry.listOverviews()).find(({ name }) => name === "alpha");
    expect((await latest())?.latest_signal).toMatchObject({ id: third, symbol: "AAPL" });
    await storage.damage(`UPDATE signals SET symbol = 'CTC/USDT' WHERE id = '${third}'`);
    expect((await latest())?.latest_signal).toMatchObject({ id: third, symbol: null });
  });

  test("a repeat of a damaged signal is refused, and what arrives with it is stored", async () => {
    const { append, registry, damagedIds, second, first } = await damaged(() => "price = 84000");
    const [repeat, other, another] = await Promise.all([
      failure(() => append({ client_signal_id: "b" })),
      append({ client_signal_id: "a" }),
      append({ client_signal_id: "d" }),
    ]);
    expect(repeat).toEqual(new AppError("damaged_signal"));
    expect(other).toMatchObject({ deduped: true, id: first });
    expect(another).toMatchObject({ deduped: false });
    expect(damagedIds).toEqual([second]);
    expect((await registry.getDesk("alpha")).differing_duplicates).toBe(1);
  });

  test("the newest signal is the one before it, and its id is still the newest", async () => {
    const { signals, alpha, storage, second, third } = await damaged(() => "symbol = symbol");
    await storage.damage(`UPDATE signals SET symbol = 'X' WHERE id = '${third}'`);
    expect((await newestSignal(signals, alpha.deskId))?.id).toBe(second);
    expect(await newestSignalId(signals, alpha.deskId)).toBe(third);
    expect(await newestSignalId(signals, null)).toBe(third);
  });
}

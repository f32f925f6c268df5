/** What readers of the feed need. */
import { expect, test } from "bun:test";
import { AppError } from "../../src/domain/errors.ts";
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

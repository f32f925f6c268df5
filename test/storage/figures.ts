/** Figures for metrics. */
import { expect, test } from "bun:test";
import { ADMIN } from "../../src/domain/storage/author.ts";
import { DAY_MS, MINUTE_MS } from "../../src/lib/text/time.ts";
import { start } from "./start.ts";

export function figuresTests(): void {
  test("name desks and active keys, the latest signal and use first", async () => {
    const { server, registry, append, alpha, beta, time } = await start();
    const createdAt = time.at;
    await append();
    time.at += MINUTE_MS;
    await append();
    const query = { now: time.at, desksMax: 10, keysMax: 10 };
    expect(await server.figures(query)).toEqual({
      databaseBytes: expect.any(Number),
      logBytes: expect.any(Number),
      desks: [
        { id: alpha.deskId, name: "alpha", createdAt, latestSignalAt: time.at },
        { id: beta.deskId, name: "beta", createdAt, latestSignalAt: null },
      ],
      desksTotal: 2,
      keys: [
        { id: alpha.keyId, desk: "alpha", lastUsedAt: time.at },
        { id: beta.keyId, desk: "beta", lastUsedAt: null },
      ],
      keysTotal: 2,
      keysExpiring: 0,
    });
    await registry.revokeKey(alpha.keyId, {}, ADMIN);
    await registry.archiveDesk("beta", true);
    expect(await server.figures(query)).toMatchObject({
      desks: [{ name: "alpha" }],
      desksTotal: 1,
      keys: [],
      keysTotal: 0,
    });
  });

  test("are limited, and say how many there are in all", async () => {
    const { server, time } = await start();
    const figures = await server.figures({ now: time.at, desksMax: 1, keysMax: 1 });
    expect(figures).toMatchObject({ desks: [{ name: "beta" }], desksTotal: 2, keysTotal: 2 });
    expect(figures.keys.length).toBe(1);
  });

  test("count the active keys that expire soon and have no successor", async () => {
    const { server, registry, mint, time } = await start();
    const expiring = async (now = time.at) =>
      (await server.figures({ now, desksMax: 0, keysMax: 0 })).keysExpiring;
    const { record } = await mint({ expiresInMs: 6 * DAY_MS });
    await mint({ expiresInMs: 8 * DAY_MS });
    expect(await expiring()).toBe(1);
    expect(await expiring(time.at + 2 * DAY_MS)).toBe(2);
    expect(await expiring(time.at + 7 * DAY_MS)).toBe(1);
    await registry.rotateKey(record.id, { overlapMs: DAY_MS, expiresInMs: null }, ADMIN);
    expect(await expiring()).toBe(0);
  });
}

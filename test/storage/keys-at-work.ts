/** Keys on the path of a signal. */
import { expect, test } from "bun:test";
import { AppError } from "../../src/domain/errors.ts";
import { keyState } from "../../src/domain/key/key.ts";
import { ADMIN } from "../../src/domain/storage/author.ts";
import { HOUR_MS, MINUTE_MS } from "../../src/lib/text/time.ts";
import { until } from "../kit/setup.ts";
import { failure, inUse, start } from "./start.ts";

const unauthorized = new AppError("unauthorized");

export function keysAtWorkTests(): void {
  test("the owner of a key is found, whatever its state; of an unknown key there is none", async () => {
    const { server, registry, alpha, time } = await start();
    const { key, deskId, keyId } = alpha;
    const owner = { keyId, deskId, deskName: "alpha", ...inUse };
    expect(await server.findOwner(key)).toEqual(owner);
    expect(await server.findOwner(`sbk_${"0".repeat(64)}`)).toBeNull();
    await registry.revokeKey(keyId, {}, ADMIN);
    // A storage may remember it for a moment.
    await until(async () => (await server.findOwner(key))?.revoked_at !== null);
    expect(await server.findOwner(key)).toEqual({ ...owner, revoked_at: time.at });
    expect(await server.hasDesks()).toBe(true);
  });

  test("once a revoke has returned, no signal of the key commits, even one that was waiting", async () => {
    const { append, list, registry, alpha } = await start();
    const outcomes: Promise<unknown>[] = [];
    let isRevoked = false;
    const load = (async () => {
      for (let isLast = false; !isLast;) {
        isLast = isRevoked;
        for (let index = 0; index < 100; index += 1) outcomes.push(failure(append()));
        await new Promise((resolve) => setImmediate(resolve));
      }
    })();
    while ((await list({ limit: 1 })).signals.length === 0) await Bun.sleep(1);
    await registry.revokeKey(alpha.keyId, {}, ADMIN);
    const committed = (await list()).signals.length;
    isRevoked = true;
    await load;
    const errors = await Promise.all(outcomes);
    expect((await list()).signals).toHaveLength(committed);
    expect(errors.filter((error) => error === undefined)).toHaveLength(committed);
    expect(errors).toContainEqual(unauthorized);
  });

  test("once archiving has returned, no signal of the desk commits, even one that was waiting", async () => {
    const { append, list, registry, server, alpha, beta, time, fatal } = await start();
    await append();
    const waiting = Array.from({ length: 50 }, () => failure(append()));
    await registry.archiveDesk("alpha", true);
    const { length: committed } = (await list()).signals;
    const errors = await Promise.all(waiting);
    expect((await list()).signals).toHaveLength(committed);
    expect(errors.filter((error) => error === undefined)).toHaveLength(committed - 1);
    expect(await failure(append())).toEqual(unauthorized);
    const owner = await server.findOwner(alpha.key);
    expect(owner).toMatchObject({ ...inUse, desk_archived_at: time.at });
    expect(owner === null ? null : keyState(owner, time.at)).toBe("archived");
    await append({}, beta);
    await registry.archiveDesk("alpha", false);
    await append();
    expect(fatal).toEqual([]);
  });

  test("a key works until its expiry and not at it, by the time of receipt", async () => {
    const { append, mint } = await start();
    const { record } = await mint({ expiresInMs: 50 });
    const at = record.expires_at ?? 0;
    await append({}, { keyId: record.id, receivedAt: at - 1 });
    expect(await failure(append({}, { keyId: record.id, receivedAt: at }))).toEqual(unauthorized);
  });

  test("a key's last use is written once a minute, also by duplicates", async () => {
    const { append, registry, alpha, time } = await start();
    const lastUse = async () => (await registry.findKey(alpha.keyId))?.last_used_at;
    expect(await lastUse()).toBeNull();
    for (const stepMs of [0, MINUTE_MS, 10 * MINUTE_MS, -HOUR_MS]) {
      time.at += stepMs;
      await append({ client_signal_id: "a" });
      expect(await lastUse()).toBe(time.at);
    }
    const written = time.at;
    time.at += MINUTE_MS - 1;
    await append({ client_signal_id: "a" });
    expect(await lastUse()).toBe(written);
  });
}

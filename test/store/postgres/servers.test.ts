/** Several servers use one PostgreSQL database. */
import { until } from "../../kit/setup.ts";
import { expect } from "bun:test";
import { AppError } from "../../../src/domain/errors.ts";
import { everySignal } from "../../../src/domain/signal/stored-signal.ts";
import { ADMIN } from "../../../src/domain/storage/author.ts";
import { postgresTest, startServers } from "./_servers.ts";

const everything = { deskId: null, filter: everySignal, order: "oldest", limit: 100_000 } as const;

postgresTest("the same signal at two servers is stored once, with one id", async () => {
  const { one, other, submit } = await startServers(2);
  const ids = Array.from({ length: 500 }, (_, index) => `id-${index}`);
  const answers = await Promise.all(
    ids.map((id) => Promise.all([one.append(submit(id)), other.append(submit(id))])),
  );
  for (const pair of answers) {
    expect(pair.map(({ deduped }) => String(deduped)).toSorted()).toEqual(["false", "true"]);
    expect(new Set(pair.map(({ id }) => id)).size).toBe(1);
  }
});

postgresTest(
  "ids rise in the order of commits over all servers, whatever their clocks say",
  async () => {
    const { one, other, submit } = await startServers(2);
    const ids: string[] = [];
    for (let round = 0; round < 20; round += 1) {
      const late = { ...submit(null), receivedAt: Date.now() - 3_600_000 };
      ids.push((await one.append(submit(null))).id, (await other.append(late)).id);
    }
    expect(ids).toEqual(ids.toSorted());
  },
);

postgresTest(
  "nothing of a key is stored on any server after its revocation has returned",
  async () => {
    const { one, other, registry, submit, keyId, key } = await startServers(2);
    let isRevoked = false;
    const late: string[] = [];
    const refused: unknown[] = [];
    const clients = [one, other].flatMap((each) =>
      Array.from({ length: 20 }, async () => {
        while (refused.length < 200) {
          const isLate = isRevoked;
          try {
            const { id } = await each.append(submit(null));
            if (isLate) late.push(id);
          } catch (error) {
            refused.push(error);
          }
        }
      }),
    );
    await Bun.sleep(100);
    await registry.revokeKey(keyId, {}, ADMIN);
    const { signals } = await one.list(everything);
    isRevoked = true;
    await Promise.all(clients);
    expect(late).toEqual([]);
    expect((await one.list(everything)).signals.length).toBe(signals.length);
    expect(refused[0]).toEqual(new AppError("unauthorized"));
    expect(await other.findOwner(key)).toMatchObject({ revoked_at: expect.any(Number) });
  },
);

postgresTest(
  "a reader on a third server misses nothing, and hears of it while it waits",
  async () => {
    const { one, other, third, told, submit } = await startServers(3);
    using _watched = third.watch();
    const sent: string[] = [];
    let isOver = false;
    const read: string[] = [];
    const reading = (async () => {
      let after: string | null = null;
      for (let isLast = false; !isLast;) {
        isLast = isOver;
        const page: Awaited<ReturnType<typeof third.list>> = await third.list({
          ...everything,
          after,
        });
        read.push(...page.signals.map(({ id }) => id));
        after = read.at(-1) ?? null;
      }
    })();
    await Promise.all(
      [one, other].map(async (each) => {
        for (let round = 0; round < 30; round += 1) {
          const stored = Array.from({ length: 20 }, () => each.append(submit(null)));
          sent.push(...(await Promise.all(stored)).map(({ id }) => id));
        }
      }),
    );
    isOver = true;
    await reading;
    expect(read).toEqual(sent.toSorted());
    await until(() => (told[2]?.length ?? 0) > 0);
  },
);

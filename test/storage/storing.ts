/** Signals are stored exactly once, in order. */
import { expect, test } from "bun:test";
import type { Signal } from "../../src/domain/signal/signal.ts";
import { ADMIN } from "../../src/domain/storage/author.ts";
import { everySignal } from "../../src/domain/signal/stored-signal.ts";
import { DAY_MS } from "../../src/lib/text/time.ts";
import { fullSignal } from "../store/_signal.ts";
import { START, start, tested } from "./start.ts";

export function storingTests(): void {
  test("each field comes back as it was sent, with the key, the desk and the times", async () => {
    const { append, list, alpha, time } = await start();
    const { id } = await append(fullSignal);
    const { signals, more } = await list();
    const { keyId: key_id, key } = alpha;
    const received_at = time.at;
    const last4 = key.slice(-4);
    expect(signals).toEqual([
      { ...fullSignal, id, desk: "alpha", key_id, key_label: null, key_last4: last4, received_at },
    ]);
    expect(more).toBeNull();
  });

  test("ids increase in commit order, also while the clock jumps and after a restart", async () => {
    const { storage, open, submit, append, time } = await start();
    const ids: string[] = [];
    const times = [5_000, 5_000, 1, 9_000, 8_999, 8_999, 9_001].map((ms) => START + ms);
    for (const at of times) {
      time.at = at;
      ids.push((await append()).id);
    }
    const burst = await Promise.all(Array.from({ length: 2_500 }, () => append()));
    ids.push(...burst.map(({ id }) => id));
    await storage.close();
    time.at = START - DAY_MS;
    const again = await open();
    ids.push((await again.server.append(submit())).id);
    expect(ids).toEqual([...new Set(ids)].toSorted());
    const found = await again.signals.list({
      deskId: null,
      filter: everySignal,
      order: "oldest",
      limit: 5_000,
    });
    expect(found.signals.map(({ id }) => id)).toEqual(ids);
    const received = found.signals.map(({ received_at }) => received_at);
    expect(received.slice(0, times.length)).toEqual(times);
  });

  test("without client_signal_id nothing is a duplicate", async () => {
    const { append, list } = await start();
    const appended = await Promise.all(Array.from({ length: 50 }, () => append()));
    expect(new Set(appended.map(({ id }) => id)).size).toBe(50);
    expect(appended.some(({ deduped }) => deduped)).toBe(false);
    expect((await list()).signals).toHaveLength(50);
  });

  test("of concurrent signals with one id the first is stored, and the others name what differs", async () => {
    const { append, list, registry } = await start();
    for (const client_signal_id of ["a", "b", "c"]) {
      const appended = await Promise.all(
        Array.from({ length: 60 }, (_, price) => append({ client_signal_id, price: price % 2 })),
      );
      const [winner] = appended.filter(({ deduped }) => !deduped);
      expect(appended.filter(({ deduped }) => !deduped)).toHaveLength(1);
      const at = appended.findIndex(({ deduped }) => !deduped);
      for (const [index, one] of appended.entries()) {
        if (index === at) continue;
        const differs: (keyof Signal)[] = index % 2 === at % 2 ? [] : ["price"];
        expect(one).toEqual({ deduped: true, id: winner?.id ?? "", differs });
      }
    }
    expect((await list()).signals).toHaveLength(3);
    const [desk] = await registry.listDesks();
    expect(desk?.differing_duplicates).toBe(3 * 30);
  });

  test("a duplicate differs field by field, and metadata by what it means", async () => {
    const { append } = await start();
    const original = { client_signal_id: "a", price: 1, metadata: '{"a":1,"b":[1]}' };
    const { id } = await append(original);
    const repeat = async (change: Partial<Signal>) => append({ ...original, ...change });
    const same = { metadata: ' { "b" : [1.0], "a": 10e-1 }' };
    expect(await repeat(same)).toEqual({ deduped: true, id, differs: [] });
    for (const [change, differs] of [
      [{ metadata: '{"a":2,"b":[1]}' }, ["metadata"]],
      [{ metadata: null }, ["metadata"]],
      [{ side: "close", price: null }, ["side", "price"]],
    ] as const) {
      expect(await repeat(change)).toEqual({ deduped: true, id, differs });
    }
  });

  test("duplicates are found per desk, across its keys, with no time limit", async () => {
    const { storage, open, submit, append, mint, alpha, beta, registry } = await start();
    const signal = { client_signal_id: "a" };
    const { id } = await append(signal);
    expect(await append(signal, beta)).toMatchObject({ deduped: false });
    const other = (await mint()).record.id;
    await registry.revokeKey(alpha.keyId, {}, ADMIN);
    expect(await append(signal, { keyId: other })).toMatchObject({ deduped: true, id });
    await storage.close();
    const { server } = await open();
    const repeated = server.append(submit(signal, { keyId: other }));
    expect(await repeated).toMatchObject({ deduped: true, id });
  });

  test("a client_signal_id is compared code point by code point", async () => {
    const { append } = await start();
    // Upper case, white space, zero width, full width, composed and decomposed, ligature, numbers, at the limit.
    const ids = ["a", "A", "a ", "a\u00a0", "a\u200b", "\ufeffa", "\uff41", "\u00e9", "e\u0301"];
    ids.push("\u00df", "ss", "\ufb01", "fi", "I", "\u0131", "1", "01", "1.0", "null", "\u{1f600}");
    ids.push("\u{1f600}".repeat(255), `${"\u{1f600}".repeat(254)}\u{1f601}`);
    for (const deduped of [false, true]) {
      for (const client_signal_id of ids) {
        expect(await append({ client_signal_id })).toMatchObject({ deduped });
      }
    }
  });

  test("a full queue refuses at once, and everything else is stored", async () => {
    const { append, list, server } = await start();
    const more = 100;
    let first = "";
    const results = await Promise.allSettled(
      Array.from({ length: tested().queueMax + more }, async (_, index) => {
        try {
          return await append({ client_signal_id: String(index) });
        } finally {
          if (first === "") first = String(index);
        }
      }),
    );
    expect(first).toBe(String(tested().queueMax));
    const refused = results.filter(({ status }) => status === "rejected");
    expect(refused).toHaveLength(more);
    for (const result of refused) expect(result).toMatchObject({ reason: { code: "unavailable" } });
    expect((await list()).signals).toHaveLength(tested().queueMax);
    expect(await append({ client_signal_id: String(tested().queueMax) })).toMatchObject({
      deduped: false,
    });
    expect(server.queue.outage).toBeNull();
  });

  test("closing waits for everything that was accepted", async () => {
    const { storage, open, append, fatal } = await start();
    const waiting = Array.from({ length: 3_000 }, () => append());
    await storage.close();
    await Promise.all(waiting);
    const { signals } = await open();
    const query = { deskId: null, filter: everySignal, order: "newest", limit: 5_000 } as const;
    expect((await signals.list(query)).signals).toHaveLength(3_000);
    expect(fatal).toEqual([]);
  });
}

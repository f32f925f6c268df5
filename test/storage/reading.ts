/** Lists, searches and single signals. */
import { expect, test } from "bun:test";
import { type SignalReader } from "../../src/domain/storage/signals.ts";
import {
  everySignal,
  type SignalList,
  type SignalQuery,
  type StoredSignal,
} from "../../src/domain/signal/stored-signal.ts";
import { DAY_MS, HOUR_MS, MINUTE_MS } from "../../src/lib/text/time.ts";
import { START, start } from "./start.ts";

export function readingTests(): void {
  test("pages of any size, order and filter have each fitting signal once", async () => {
    const { signals, all, alpha, second } = await many();
    const moment = all[20]?.received_at ?? 0;
    for (const change of [
      {},
      { symbol: "RARE" },
      { symbol: "çi" },
      { side: "close", symbol: "btc" },
      { direction: "short" },
      { key_id: second },
      { from: moment, to: moment + 10_000 },
      { symbol: "NONE" },
      { ids: [3, 8, 20, 21, 44].map((index) => all[index]?.id ?? "") },
      { ids: all.map(({ id }) => id), symbol: "RARE", side: "close", from: moment },
      { ids: [] },
    ]) {
      for (const deskId of [alpha.deskId, null]) {
        for (const order of ["newest", "oldest"] as const) {
          const filter = { ...everySignal, ...change };
          const wanted = all.filter((one) =>
            fits(one, { deskId, filter } as SignalQuery, alpha.deskId),
          );
          const sorted = order === "newest" ? wanted.toReversed() : wanted;
          for (const limit of [1, 7, 100]) {
            const query = { deskId, filter, order, limit };
            expect(await everyPage(signals, query)).toEqual(sorted.map(({ id }) => id));
          }
        }
      }
    }
  });

  test("a symbol is found by any part of it, in upper or lower case, taken literally", async () => {
    const { append, signals, alpha } = await start();
    for (const symbol of ["BTC/USDT", "btc-perp", "Zürich 100%?", "ΣΤΟΧΟΣ", "ΟΔΟΣΑ", "a*b_c[d]"]) {
      await append({ symbol });
    }
    for (const [symbol, found] of [
      ["BTC", ["BTC/USDT", "btc-perp"]],
      ["tc/uSD", ["BTC/USDT"]],
      ["ZÜRICH", ["Zürich 100%?"]],
      ["στοχ", ["ΣΤΟΧΟΣ"]],
      ["ΟΔΟΣ", ["ΟΔΟΣΑ"]],
      ["οδος", ["ΟΔΟΣΑ"]],
      ["στοχοσ", ["ΣΤΟΧΟΣ"]],
      ["%", ["Zürich 100%?"]],
      ["_", ["a*b_c[d]"]],
      ["*", ["a*b_c[d]"]],
      ["[d]", ["a*b_c[d]"]],
      ["BTC/USDT ", []],
      ["x".repeat(100_000), []],
    ] as const) {
      const filter = { ...everySignal, symbol };
      const query = { deskId: alpha.deskId, filter, order: "oldest", limit: 10 } as const;
      const symbols = (await signals.list(query)).signals.map((one) => one.symbol);
      expect({ symbol, symbols }).toEqual({ symbol, symbols: [...found] });
    }
  });

  test("a desk's known symbols are its own, each once, the latest first, at most so many", async () => {
    const { append, signals, alpha, beta } = await start();
    const { deskId } = alpha;
    expect(await signals.symbols(deskId, 10)).toEqual([]);
    for (const symbol of ["B", "A", "b", "A", "C", "A"]) await append({ symbol });
    await append({ symbol: "THEIRS" }, beta);
    expect(await signals.symbols(deskId, 10)).toEqual(["A", "C", "b", "B"]);
    expect(await signals.symbols(deskId, 2)).toEqual(["A", "C"]);
  });

  test("cursors exclude their signal, and may be any id", async () => {
    const { list, all } = await many();
    const ids = all.filter(({ desk }) => desk === "alpha").map(({ id }) => id);
    const of = async (query: Partial<SignalQuery>) =>
      (await list(query)).signals.map(({ id }) => id);
    const between = { after: ids[3] ?? "", before: ids[8] ?? "" };
    expect(await of(between)).toEqual(ids.slice(4, 8));
    expect(await of({ ...between, order: "newest" })).toEqual(ids.slice(4, 8).toReversed());
    expect(await of({ before: "0".repeat(26) })).toEqual([]);
    expect(await of({ after: "0".repeat(26) })).toEqual(ids);
    expect(await of({ after: "Z".repeat(26) })).toEqual([]);
    const other = all.find(({ desk }) => desk === "beta")?.id ?? "";
    expect(await of({ after: other })).toEqual(ids.filter((id) => id > other));
  });

  test("a page with much metadata ends early, and the next one continues after it", async () => {
    const { append, signals, alpha } = await start();
    const metadata = JSON.stringify({ note: "x".repeat(1_000) });
    const ids: string[] = [];
    for (let index = 0; index < 10; index += 1) ids.push((await append({ metadata })).id);
    const { deskId } = alpha;
    const query = { deskId, filter: everySignal, order: "newest", limit: 100 } as const;
    const bounded = { ...query, metadataUnitsMax: 2_500 };
    expect((await signals.list(bounded)).signals).toHaveLength(3);
    expect(await everyPage(signals, bounded)).toEqual(ids.toReversed());
  });

  test("signals are counted between two moments, of all desks, without duplicates", async () => {
    const { append, signals, beta, time } = await start();
    expect(await signals.countBetween(START, START + DAY_MS)).toBe(0);
    await append({ client_signal_id: "one" });
    time.at += MINUTE_MS;
    await append({ client_signal_id: "one" });
    await append({}, beta);
    await append({});
    for (const [from, to, count] of [
      [START - DAY_MS, START + DAY_MS, 3],
      [START, START + MINUTE_MS, 1],
      [START + 1, START + DAY_MS, 2],
      [START + MINUTE_MS, START + MINUTE_MS + 1, 2],
      [START + MINUTE_MS + 1, START + DAY_MS, 0],
    ] as const) {
      expect([from, to, await signals.countBetween(from, to)]).toEqual([from, to, count]);
    }
  });

  test("limits of time follow the time of receipt, however the clock stepped", async () => {
    const { append, signals, alpha, beta, time } = await start();
    const YEARS_MS = 3_650 * DAY_MS;
    const steps = [
      0,
      0,
      YEARS_MS,
      -YEARS_MS,
      0,
      0,
      -3 * HOUR_MS,
      0,
      2 * HOUR_MS,
      -YEARS_MS,
      YEARS_MS,
      0,
    ];
    for (const step of steps) {
      time.at += step;
      // Alone: one forward step of the clock is enough.
      await append();
      if (step === YEARS_MS) continue;
      const batch = Array.from({ length: 1_500 }, (_, index) => {
        time.at += 500;
        return append({ side: index === 7 ? "close" : "open" }, index % 3 === 0 ? beta : alpha);
      });
      await Promise.all(batch);
    }
    const every = { deskId: null, filter: everySignal, order: "oldest", limit: 100_000 } as const;
    const all = (await signals.list(every)).signals;
    for (const [from, to] of [
      [time.at - MINUTE_MS, null],
      [time.at - 3 * HOUR_MS, time.at - HOUR_MS],
      [null, START + HOUR_MS],
      [START + HOUR_MS, null],
      [time.at + DAY_MS, null],
      [null, START - DAY_MS],
      [START + YEARS_MS / 2, START + YEARS_MS / 2 + 1],
    ] as const) {
      for (const side of [null, "close"]) {
        for (const deskId of [alpha.deskId, null]) {
          for (const order of ["newest", "oldest"] as const) {
            const query = { deskId, filter: { ...everySignal, from, to, side }, order, limit: 997 };
            const wanted = all.filter((one) => fits(one, query, alpha.deskId)).map(({ id }) => id);
            const found = await everyPage(signals, query);
            expect(found).toEqual(order === "newest" ? wanted.toReversed() : wanted);
          }
        }
      }
      const [low, high] = [from ?? 0, to ?? Number.MAX_SAFE_INTEGER];
      const count = all.filter(({ received_at: at }) => at >= low && at < high).length;
      expect(await signals.countBetween(low, high)).toBe(count);
    }
  }, 30_000);

  test("the place of a signal in a range rises from 0 to 1, whatever the filter", async () => {
    const { signals, all, alpha } = await many();
    const filter = { ...everySignal, symbol: "RARE" };
    const query = { deskId: alpha.deskId, filter, order: "oldest", limit: 1 } as const;
    const placesIn = async (change: Partial<SignalQuery>) =>
      Promise.all(all.map(async ({ id }) => signals.progress({ ...query, ...change }, id)));
    const places = await placesIn({});
    expect(places).toEqual(places.toSorted((one, other) => one - other));
    expect([places[29], places[59]]).toEqual([0.5, 1]);
    const [after, before] = [all[19]?.id ?? "", all[40]?.id ?? ""];
    const inner = await placesIn({ after, before });
    expect([inner[0], inner[19], inner[29], inner[39], inner[59]]).toEqual([0, 0, 0.5, 1, 1]);
    expect(await placesIn({ after: all[59]?.id ?? "" })).toEqual(all.map(() => 1));
  });

  test("of all desks, each signal with an id or client_signal_id is found", async () => {
    const { append, signals, beta } = await start();
    const { id } = await append({ client_signal_id: "same" });
    const other = await append({ client_signal_id: "same" }, beta);
    const named = await append({ client_signal_id: id }, beta);
    const find = async (text: string) => (await signals.find(null, text)).map((one) => one.id);
    expect(await find("same")).toEqual([id, other.id]);
    expect(await find(id)).toEqual([id, named.id]);
    expect(await find(other.id.toLowerCase())).toEqual([other.id]);
    expect(await find("none")).toEqual([]);
  });

  test("one is found by its id or client_signal_id, exactly, and only by its own desk", async () => {
    const { append, signals, alpha, beta } = await start();
    const { id } = await append({ client_signal_id: "Bot 7" });
    const named = await append({ client_signal_id: id });
    const find = async (text: string, deskId = alpha.deskId) =>
      (await signals.find(deskId, text)).map((found) => found.id);
    expect(await find("Bot 7")).toEqual([id]);
    expect(await find(id)).toEqual([id, named.id]);
    for (const text of ["bot 7", "Bot 7 ", "%", "", "\u0000"]) expect(await find(text)).toEqual([]);
    expect(await find("Bot 7", beta.deskId)).toEqual([]);
    expect(await find(id, beta.deskId)).toEqual([]);
    expect((await signals.get(alpha.deskId, id))?.client_signal_id).toBe("Bot 7");
    expect(await signals.get(beta.deskId, id)).toBeNull();
    expect(await signals.get(alpha.deskId, "x")).toBeNull();
  });
}

/** 60 signals, of two desks by turns, a second apart. */
async function many() {
  const started = await start();
  const { append, alpha, beta, time, mint } = started;
  const second = (await mint()).record.id;
  const all: StoredSignal[] = [];
  for (let index = 0; index < 60; index += 1) {
    time.at += 1_000;
    const owner = index % 2 === 0 ? alpha : beta;
    const keyId = index % 10 === 0 ? second : owner.keyId;
    const signal = {
      client_signal_id: `id-${index}`,
      symbol: index % 3 === 0 ? "Rare ÇI%_" : "BTC/USDT",
      side: index % 4 === 0 ? "close" : "open",
      direction: index % 5 === 0 ? null : index % 5 === 1 ? "short" : "long",
    } as const;
    await append(signal, { ...owner, keyId });
  }
  const query = { deskId: null, filter: everySignal, order: "oldest", limit: 100 } as const;
  all.push(...(await started.signals.list(query)).signals);
  return { ...started, all, second };
}

const fits = (signal: StoredSignal, { deskId, filter }: SignalQuery, desk: number): boolean =>
  (deskId === null || (signal.desk === "alpha" ? desk : -1) === deskId) &&
  (["source", "type", "side", "direction", "key_id"] as const).every(
    (column) => filter[column] === null || filter[column] === signal[column],
  ) &&
  (filter.ids?.includes(signal.id) ?? true) &&
  signal.symbol.toLowerCase().includes(filter.symbol?.toLowerCase() ?? "") &&
  (filter.from === null || signal.received_at >= filter.from) &&
  (filter.to === null || signal.received_at < filter.to);

/** Ids of all signals that the query finds, following its cursors. */
async function everyPage(signals: SignalReader, query: SignalQuery): Promise<string[]> {
  const ids: string[] = [];
  let cursor: string | null = null;
  do {
    const place: Partial<SignalQuery> =
      query.order === "newest" ? { before: cursor } : { after: cursor };
    const found: SignalList = await signals.list({ ...query, ...place });
    ids.push(...found.signals.map(({ id }) => id));
    cursor = found.more;
  } while (cursor !== null);
  return ids;
}

/** The console's searches over a million signals: results are checked, times are printed. */
import { expect, setDefaultTimeout, test } from "bun:test";
import { readChunks, readSignalPage, type SignalPage } from "../../src/console/signals/listing.ts";
import { everySignal, type SignalFilter } from "../../src/domain/stored-signal.ts";
import { openDatabase } from "../../src/store/sqlite/open.ts";
import { ROWS_LOOKED_AT_MAX, SqliteSignals } from "../../src/store/sqlite/signals.ts";
import { seed, seededId, seededUlid } from "../_databases.ts";
import { onCleanup } from "../_setup.ts";
import { scale } from "./_faults.ts";

setDefaultTimeout(120_000);

const SIGNALS = scale(1_000_000, 200_000);
const PAGE = 50;

test("the console finds and exports the right ones of a million signals", async () => {
  const { dataDir, keyId } = seed({ signals: SIGNALS });
  const db = openDatabase(dataDir, "console");
  onCleanup(() => db.close());
  const signals = new SqliteSignals(db);
  const middle = seededUlid(SIGNALS / 2);
  const page = (filter: Partial<SignalFilter>, cursor: { before?: string; after?: string } = {}) =>
    readSignalPage(signals, {
      deskId: 1,
      filter: { ...everySignal, ...filter },
      limit: PAGE,
      before: null,
      after: null,
      ...cursor,
    });
  const seqs = (from: number) =>
    Array.from({ length: PAGE }, (_, index) => seededUlid(from - index));

  expect(idsOf(await timed("the newest", () => page({})))).toEqual(seqs(SIGNALS));
  expect(idsOf(await timed("before the middle", () => page({}, { before: middle })))).toEqual(
    seqs(SIGNALS / 2 - 1),
  );
  expect(idsOf(await timed("after the middle", () => page({}, { after: middle })))).toEqual(
    seqs(SIGNALS / 2 + PAGE),
  );
  expect(idsOf(await timed("by key", () => page({ key_id: keyId })))).toEqual(seqs(SIGNALS));
  const none = await timed("by a symbol that no signal has", () => page({ symbol: "NONE" }));
  expect(none.searchedTo?.id).toBe(seededUlid(SIGNALS - ROWS_LOOKED_AT_MAX + 1));
  const found = await timed("by client_signal_id", async () =>
    signals.find(1, seededId(SIGNALS / 2)),
  );
  expect(found.map(({ id }) => id)).toEqual([middle]);
  let exported = 0;
  await timed("all, in chunks", async () => {
    const wanted = { deskId: 1, filter: everySignal };
    for await (const chunk of readChunks(signals, wanted, SIGNALS)) {
      exported += chunk.length;
    }
  });
  expect(exported).toBe(SIGNALS);
});

function idsOf(found: SignalPage): string[] {
  return found.signals.map(({ id }) => id);
}

async function timed<T>(what: string, work: () => Promise<T>): Promise<T> {
  const began = performance.now();
  const result = await work();
  process.stderr.write(`CONSOLE ${what} | ${(performance.now() - began).toFixed(1)} ms\n`);
  return result;
}

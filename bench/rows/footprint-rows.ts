/** The rows about memory, disk and the time of a start, taken from the cells of the rows before them. */
import type { Figures } from "../figures.ts";
import { type IdKind, idKinds } from "../load.ts";
import { median } from "../statistics.ts";
import type { Stored } from "../stored.ts";
import { loadOf, type Round } from "./round.ts";
import { type Result, type Row, storedLack } from "./row.ts";

const MEMORY_MB_MAX = 200;

export const memoryRow: Row = {
  load: "memory, under any of these loads",
  goal: `under ${MEMORY_MB_MAX} MB`,
  async measure(round) {
    await cellsOf(round, "v4", round.place.stored?.v4 ?? null);
    const ours = round.cells.filter(({ server }) => server === "signalbox");
    const peak_mib = Math.max(...ours.map(({ memory_mib_peak }) => memory_mib_peak));
    const figure = { name: "highest peak memory", unit: "MB", atMost: MEMORY_MB_MAX } as const;
    return [[figure, (peak_mib * 2 ** 20) / 1e6]];
  },
};

const START_MS_MAX = 300;

export const startRow: Row = {
  load: "start to first 201 with `--stored` signals",
  goal: `under ${START_MS_MAX / 1_000} s`,
  lacks: storedLack,
  async measure(round) {
    const results: Result[] = [];
    for (const kind of idKinds) {
      const cells = await cellsOf(round, kind, round.stored(kind));
      const figure = { name: `UUID ${kind}`, unit: "ms", atMost: START_MS_MAX } as const;
      results.push([figure, median(cells.map(({ start_ms }) => start_ms))]);
    }
    return results;
  },
};

export const diskRow: Row = {
  load: "bytes on disk per signal",
  goal: "stated",
  async measure(round) {
    const cells = await cellsOf(round, "v7", null);
    const { place } = round;
    return [
      [
        { name: "new database, UUID v7", unit: "bytes" },
        median(cells.map(({ disk_bytes_per_signal }) => disk_bytes_per_signal ?? Number.NaN)),
      ],
      ...(place.stored === null ? [] : idKinds).map((kind): Result => [
        { name: `filled database, UUID ${kind}`, unit: "bytes" },
        round.stored(kind).bytes_per_signal,
      ]),
    ];
  },
};

/** Signalbox's cells with such ids on that database (null: a new one). Measures one if there is none yet. */
async function cellsOf(round: Round, kind: IdKind, stored: Stored | null): Promise<Figures[]> {
  const cells = round.cells.filter(
    ({ server, load, stored_before }) =>
      server === "signalbox" && load.ids === kind && stored_before > 0 === (stored !== null),
  );
  return cells.length > 0 ? cells : [await round.measure("signalbox", loadOf(kind), stored)];
}

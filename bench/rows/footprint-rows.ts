/** The rows about what Signalbox takes of the machine, under the other rows' loads. */
import { FULL, type Round } from "./round.ts";
import type { Figures } from "../figures.ts";
import type { Figure, Row } from "./row.ts";

const MEMORY_MB_MAX = 200;

/** Where the load took so long; what is shorter may still be growing to its size. */
const FLAT_SECONDS = 3_600;
const GROWTH_MAX = 1.05;

const memory: Figure = { name: "highest peak memory", unit: "MB", atMost: MEMORY_MB_MAX };

export const memoryRow: Row = {
  load: "memory, at any of these",
  goal: `under ${MEMORY_MB_MAX} MB, flat over an hour (\`--seconds ${FLAT_SECONDS}\`)`,
  async measure(round) {
    const cells = await ourCells(round);
    const peaks = cells.map((cell) => (cell.memory_mib_peak * 2 ** 20) / 1e6);
    const growths = cells.map((cell) => cell.memory_mib_end / cell.memory_mib_halfway);
    const isLong = round.place.options.seconds >= FLAT_SECONDS;
    const growth: Figure = { name: "end of a load ÷ its middle, at most", unit: "×" };
    return [
      [memory, Math.max(...peaks)],
      [isLong ? { ...growth, atMost: GROWTH_MAX } : growth, Math.max(...growths)],
    ];
  },
};

const diskNew: Figure = { name: "on disk, a signal, new database", unit: "bytes" };
const diskStored: Figure = { name: "on disk, a signal, stored signals", unit: "bytes" };

export const diskRow: Row = {
  load: "bytes on disk a signal",
  goal: "stated",
  async measure(round) {
    const cells = await ourCells(round);
    const largest = cells
      .filter(({ stored_before }) => stored_before === 0)
      .toSorted((a, b) => (b.stored ?? 0) - (a.stored ?? 0))[0];
    const { stored } = round.place;
    return [
      [diskNew, largest?.disk_bytes_per_signal ?? Number.NaN],
      ...(stored === null ? [] : [[diskStored, stored.bytes_per_signal] as const]),
    ];
  },
};

/** Those of the rows before; where there were none, one. */
async function ourCells(round: Round): Promise<Figures[]> {
  if (!round.cells.some(isOurs)) await round.measure("signalbox", FULL);
  return round.cells.filter(isOurs);
}

function isOurs({ server }: Figures): boolean {
  return server === "signalbox";
}

/** The rows that compare Signalbox's rate with bare Bun.serve's under the same load. */
import type { Load } from "../load.ts";
import { storedFirst } from "../signal.ts";
import { FULL, type Round } from "./round.ts";
import type { Figure, Result, Row } from "./row.ts";

export const newRow = rateRow("UUID v4 ids, 256 connections, new database", FULL, 0.8);
/** Signals that come again at once, and such as come after many others. */
export const duplicatesRow: Row = {
  load: "duplicates only, 256 connections",
  goal: bareGoal(0.9),
  async measure(round) {
    const load: Load = { connections: 256, kind: "duplicates" };
    const again = await ratios(round, load, 0.9);
    const each = storedFirst.repeats.toLocaleString("en-US");
    const inTurn = await ratios(round, { ...load, kind: "repeats" }, 0.9, `${each} in turn: `);
    return [...again, ...inTurn];
  },
};
export const unauthorisedRow = rateRow(
  "401 only, 256 connections",
  { connections: 256, kind: "unauthorised" },
  0.95,
);
export const invalidRow = rateRow(
  "422 only, 256 connections",
  { connections: 256, kind: "invalid" },
  0.95,
);

function rateRow(title: string, load: Load, atLeast: number): Row {
  return {
    load: title,
    goal: bareGoal(atLeast),
    measure: (round) => ratios(round, load, atLeast),
  };
}

function bareGoal(atLeast: number): string {
  return `at least ${atLeast} of bare \`Bun.serve\``;
}

async function ratios(round: Round, load: Load, atLeast: number, prefix = ""): Promise<Result[]> {
  const [ours, bare] = await round.pair(load, "bare");
  const rate: Figure = { name: `${prefix}requests/s ÷ bare's`, unit: "×", atLeast };
  const cpu: Figure = { name: `${prefix}CPU a request ÷ bare's`, unit: "×" };
  return [
    [rate, ours.throughput_per_s / bare.throughput_per_s],
    [cpu, ours.cpu_us_per_signal / bare.cpu_us_per_signal],
  ];
}

/** The rows that compare Signalbox's rate with bare Bun.serve's under the same load. */
import type { Load } from "../load.ts";
import { FULL } from "./round.ts";
import type { Figure, Row } from "./row.ts";

const cpu: Figure = { name: "CPU a request ÷ bare's", unit: "×" };

export const newRow = rateRow("UUID v4 ids, 256 connections, new database", FULL, 0.8);
export const duplicatesRow = rateRow(
  "duplicates only, 256 connections",
  { connections: 256, kind: "duplicates" },
  0.9,
);
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
  const rate: Figure = { name: "requests/s ÷ bare's", unit: "×", atLeast };
  return {
    load: title,
    goal: `at least ${atLeast} of bare \`Bun.serve\``,
    async measure(round) {
      const [ours, bare] = await round.pair(load, "bare");
      return [
        [rate, ours.throughput_per_s / bare.throughput_per_s],
        [cpu, ours.cpu_us_per_signal / bare.cpu_us_per_signal],
      ];
    },
  };
}

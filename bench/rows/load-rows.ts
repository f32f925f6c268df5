/** The rows that compare Signalbox's rate with bare Bun.serve's under the same load. */
import type { LoadKind } from "../load.ts";
import { loadOf } from "./round.ts";
import type { Row } from "./row.ts";

export const newRow: Row = {
  load: "new database, 256 connections",
  goal: "stated",
  async measure(round) {
    const v7 = await round.measure("signalbox", loadOf("v7"));
    const bare = await round.measure("bare", loadOf("v7"));
    const v4 = await round.measure("signalbox", loadOf("v4"));
    return [
      [
        { name: "UUID v7: signals/s ÷ bare's", unit: "×" },
        v7.throughput_per_s / bare.throughput_per_s,
      ],
      [
        { name: "UUID v4: signals/s ÷ bare's", unit: "×" },
        v4.throughput_per_s / bare.throughput_per_s,
      ],
    ];
  },
};

export const duplicatesRow = rateRow("duplicates only", "duplicates");
export const unauthorisedRow = rateRow("401 only", "unauthorised");
export const invalidRow = rateRow("422 only", "invalid");

function rateRow(title: string, kind: LoadKind): Row {
  return {
    load: `${title}, 256 connections`,
    goal: "stated",
    async measure(round) {
      const [ours, bare] = await round.pair(loadOf(kind), "bare");
      return [
        [{ name: "requests/s ÷ bare's", unit: "×" }, ours.throughput_per_s / bare.throughput_per_s],
      ];
    },
  };
}

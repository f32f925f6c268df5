/** The row about a new database, whose rate is compared with bare Bun.serve's under the same load. */
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

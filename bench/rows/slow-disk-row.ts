/** Shows what a slow disk costs. */
import { missing } from "../tools.ts";
import { loadOf } from "./round.ts";
import type { Row } from "./row.ts";

export const slowDiskRow: Row = {
  load: "every fsync slowed down (`--fsync-ms`, 5 ms), 256 connections",
  goal: "stated",
  lacks: ({ place }) => (place.tools.strace === null ? missing("strace", "strace") : null),
  async measure(round) {
    const fast = await round.measure("signalbox", loadOf("v7"));
    const { fsyncMs } = round.place.options;
    const slow = await round.measure("signalbox", loadOf("v7"), { fsyncMs });
    return [
      [
        { name: "signals/s ÷ the fast disk's", unit: "×" },
        slow.throughput_per_s / fast.throughput_per_s,
      ],
    ];
  },
};

/** What a slow disk costs. */
import { missing } from "../tools.ts";
import { FULL } from "./round.ts";
import type { Figure, Row } from "./row.ts";

const RATE_RATIO_MIN = 0.7;

const rate: Figure = { name: "signals/s ÷ the fast disk's", unit: "×", atLeast: RATE_RATIO_MIN };

export const slowDiskRow: Row = {
  load: "every fsync slowed down (`--fsync-ms`, 5 ms), 256 connections",
  goal: `at least ${RATE_RATIO_MIN} of the rate with a fast disk`,
  lacks: ({ place }) => (place.tools.strace === null ? missing("strace", "strace") : null),
  async measure(round) {
    const fast = await round.measure("signalbox", FULL);
    const { fsyncMs } = round.place.options;
    const slow = await round.measure("signalbox", FULL, { fsyncMs });
    return [[rate, slow.throughput_per_s / fast.throughput_per_s]];
  },
};

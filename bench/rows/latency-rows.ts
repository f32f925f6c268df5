/** The rows about how long answers take in a closed loop. */
import { measureFsyncMs } from "../machine.ts";
import { FULL } from "./round.ts";
import type { Figure, Row } from "./row.ts";

const P99_RATIO_MAX = 3;
const STALL_MS_MAX = 20;
const CROSSING_MS_MAX = 0.1;

const p99: Figure = { name: "p99 ÷ bare's", unit: "×", atMost: P99_RATIO_MAX };
const longest: Figure = { name: "longest answer", unit: "ms" };
/** All 256 wait for a turn of half of them on average; what one waits beyond that is a stall. */
const stall: Figure = { name: "longest answer less p50", unit: "ms", atMost: STALL_MS_MAX };

export const p99Row: Row = {
  load: "p99 at 256 connections, closed loop",
  goal: `at most ${P99_RATIO_MAX} times bare's; no stall above ${STALL_MS_MAX} ms`,
  async measure(round) {
    const [ours, bare] = await round.pair(FULL, "bare");
    return [
      [p99, ours.latency_ms_p99 / bare.latency_ms_p99],
      [longest, ours.latency_ms_max],
      [stall, ours.latency_ms_max - ours.latency_ms_p50],
    ];
  },
};

const p50: Figure = { name: "p50", unit: "ms" };
const fsync: Figure = { name: "one fsync", unit: "ms" };
const excess: Figure = {
  name: "p50 less bare's and one fsync",
  unit: "ms",
  atMost: CROSSING_MS_MAX,
};

export const singleRow: Row = {
  load: "1 connection, p50",
  goal: `bare's plus one fsync plus ${CROSSING_MS_MAX} ms`,
  async measure(round) {
    const [ours, bare] = await round.pair({ connections: 1, kind: "random" }, "bare");
    const fsync_ms = measureFsyncMs(round.place.folder);
    return [
      [p50, ours.latency_ms_p50],
      [fsync, fsync_ms],
      [excess, ours.latency_ms_p50 - bare.latency_ms_p50 - fsync_ms],
    ];
  },
};

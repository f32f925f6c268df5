/** Fixed arrival rates, in an open loop. */
import type { Figures } from "../figures.ts";
import { measureFsyncMs } from "../machine.ts";
import { FULL, type Round } from "./round.ts";
import type { Figure, Result, Row } from "./row.ts";

const RATES_PER_S = [1_000, 5_000] as const;
const P99_MS_MAX = 2;
const FSYNCS = 2;
/** What half of the maximum is rounded to. */
const RATE_STEP = 100;

const half: Figure = { name: "half the maximum", unit: "/s" };
const fsync: Figure = { name: "one fsync", unit: "ms" };
/** What the machine and the client allow at all. */
const bareP99: Figure = { name: "half the maximum: bare's p99", unit: "ms" };
const excess: Figure = {
  name: "half the maximum: p99 less two fsyncs",
  unit: "ms",
  atMost: P99_MS_MAX,
};

const percentiles = {
  p50: (cell: Figures) => cell.latency_ms_p50,
  p99: (cell: Figures) => cell.latency_ms_p99,
  "p99.9": (cell: Figures) => cell.latency_ms_p999,
  longest: (cell: Figures) => cell.latency_ms_max,
} as const;

export const openRow: Row = {
  load: "fixed arrival rates, open loop, 256 connections",
  goal: `p99 under ${P99_MS_MAX} ms plus two fsyncs at half the maximum`,
  async measure(round) {
    const { ratePerS } = round.place.options;
    const results: Result[] = [];
    for (const rate of ratePerS === null ? RATES_PER_S : [ratePerS]) {
      const cell = await atRate(round, rate);
      results.push(...states(`${rate.toLocaleString("en-US")}/s`, cell));
    }
    if (ratePerS !== null) return results;
    const { throughput_per_s } = await round.measure("signalbox", FULL);
    const rate = Math.max(RATE_STEP, Math.round(throughput_per_s / 2 / RATE_STEP) * RATE_STEP);
    const cell = await atRate(round, rate);
    const bare = await round.measure("bare", { ...FULL, rate_per_s: rate });
    const fsync_ms = measureFsyncMs(round.place.folder);
    return [
      ...results,
      [half, rate],
      ...states("half the maximum", cell),
      [bareP99, bare.latency_ms_p99],
      [fsync, fsync_ms],
      [excess, cell.latency_ms_p99 - FSYNCS * fsync_ms],
    ];
  },
};

function atRate(round: Round, rate_per_s: number): Promise<Figures> {
  return round.measure("signalbox", { ...FULL, rate_per_s });
}

function states(title: string, cell: Figures): Result[] {
  return Object.entries(percentiles).map(([name, read]) => [
    { name: `${title}: ${name}`, unit: "ms" },
    read(cell),
  ]);
}

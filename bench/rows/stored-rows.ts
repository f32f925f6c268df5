/** The rows about a database with many stored signals, one per kind of ids. */
import type { IdKind, Load } from "../load.ts";
import { formatCount } from "../markdown.ts";
import { loadOf } from "./round.ts";
import { type Row, storedLack } from "./row.ts";

/** Of the open loop. */
const RATE_PER_S = 1_000;

const openLoad = (ids: IdKind): Load => ({ ...loadOf(ids), rate_per_s: RATE_PER_S });

const V7_NEW_RATIO_MIN = 0.95;
const V7_BARE_RATIO_MIN = 0.5;
const V7_OPEN_P99_MS_MAX = 5;

export const v7Row: Row = {
  load: "UUID v7 with `--stored` signals, 256 connections",
  goal: `at least ${V7_NEW_RATIO_MIN} of a new database, at least ${V7_BARE_RATIO_MIN} of bare \`Bun.serve\`; p99 at ${formatCount(RATE_PER_S)}/s at most ${V7_OPEN_P99_MS_MAX} ms`,
  lacks: storedLack,
  async measure(round) {
    const stored = round.stored("v7");
    const young = await round.measure("signalbox", loadOf("v7"));
    const old = await round.measure("signalbox", loadOf("v7"), stored);
    const bare = await round.measure("bare", loadOf("v7"));
    const open = await round.measure("signalbox", openLoad("v7"), stored);
    return [
      [
        { name: "signals/s ÷ a new database's", unit: "×", atLeast: V7_NEW_RATIO_MIN },
        old.throughput_per_s / young.throughput_per_s,
      ],
      [
        { name: "signals/s ÷ bare's", unit: "×", atLeast: V7_BARE_RATIO_MIN },
        old.throughput_per_s / bare.throughput_per_s,
      ],
      [{ name: "p99", unit: "ms" }, old.latency_ms_p99],
      [openP99(V7_OPEN_P99_MS_MAX), open.latency_ms_p99],
    ];
  },
};

const V4_P99_MS_MAX = 40;
const V4_OPEN_P99_MS_MAX = 15;

export const v4Row: Row = {
  load: "UUID v4 with `--stored` signals, 256 connections",
  goal: `p99 at most ${V4_P99_MS_MAX} ms, at ${formatCount(RATE_PER_S)}/s at most ${V4_OPEN_P99_MS_MAX} ms`,
  lacks: storedLack,
  async measure(round) {
    const stored = round.stored("v4");
    const old = await round.measure("signalbox", loadOf("v4"), stored);
    const open = await round.measure("signalbox", openLoad("v4"), stored);
    return [
      [{ name: "p99", unit: "ms", atMost: V4_P99_MS_MAX }, old.latency_ms_p99],
      [openP99(V4_OPEN_P99_MS_MAX), open.latency_ms_p99],
    ];
  },
};

function openP99(atMost: number) {
  return { name: `p99 at ${formatCount(RATE_PER_S)}/s`, unit: "ms", atMost } as const;
}

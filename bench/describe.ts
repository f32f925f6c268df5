/** Describes cells in words. */
import type { Figures } from "./figures.ts";
import { describeLoad } from "./load.ts";

type Conditions = Pick<Figures, "server" | "load" | "fsync_ms" | "stored_before">;

/** Equal for the same cell in different rounds. */
export function cellKey({ server, load, fsync_ms, stored_before }: Conditions): string {
  const { connections, kind, rate_per_s = null } = load;
  return JSON.stringify([server, connections, kind, rate_per_s, fsync_ms, stored_before > 0]);
}

/** One line, for progress. */
export function describeCell(cell: Figures): string {
  const { connections } = cell.load;
  return [
    `${cell.server}, ${describeLoad(cell.load)}, ${connections} ${connections === 1 ? "connection" : "connections"}${describeConditions(cell)}`,
    `${Math.round(cell.throughput_per_s)}/s`,
    `p50 ${cell.latency_ms_p50.toFixed(2)}, p99 ${cell.latency_ms_p99.toFixed(2)}, longest ${cell.latency_ms_max.toFixed(1)} ms`,
    `CPU ${cell.cpu_us_per_signal.toFixed(1)} µs a request (${describeThreads(cell)})`,
    `load generator at ${Math.round(cell.client_cpu_share * 100)} %`,
  ].join("; ");
}

/** Names the conditions that differ from the usual ones, each after a comma. */
export function describeConditions({ fsync_ms, stored_before, stored }: Figures): string {
  const slow = fsync_ms === 0 || stored === null ? [] : [`fsync + ${fsync_ms} ms`];
  const old = stored_before === 0 ? [] : [`${millions(stored_before)} M stored`];
  return [...slow, ...old].map((text) => `, ${text}`).join("");
}

export function describeThreads({ threads }: Figures): string {
  return threads.map(({ name, cpu_us_per_signal: us }) => `${name} ${us.toFixed(1)}`).join(", ");
}

function millions(count: number): string {
  return (count / 1e6).toFixed(count < 1e6 ? 2 : 0);
}

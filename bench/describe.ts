/** Describes cells in words. */
import type { Figures } from "./figures.ts";
import { describeLoad } from "./load.ts";

type Conditions = Pick<Figures, "server" | "load" | "stored_before">;

/** Equal for the same cell in different rounds. */
export function cellKey({ server, load, stored_before }: Conditions): string {
  const { connections, ids, rate_per_s = null } = load;
  return JSON.stringify([server, connections, ids, rate_per_s, stored_before > 0]);
}

/** One line, for progress. */
export function describeCell(cell: Figures): string {
  return [
    `${cell.server}, ${describeLoad(cell.load)}${describeStored(cell)}, ${cell.load.connections} connections`,
    `${Math.round(cell.throughput_per_s)}/s`,
    `p50 ${cell.latency_ms_p50.toFixed(2)}, p99 ${cell.latency_ms_p99.toFixed(2)}, longest ${cell.latency_ms_max.toFixed(1)} ms`,
    `CPU ${cell.cpu_us_per_signal.toFixed(1)} µs a request (${describeThreads(cell)})`,
    `load generator at ${Math.round(cell.client_cpu_share * 100)} %`,
  ].join("; ");
}

export function describeStored({ stored_before }: Figures): string {
  if (stored_before === 0) return "";
  return `, ${(stored_before / 1e6).toFixed(stored_before < 1e6 ? 2 : 0)} M stored`;
}

function describeThreads({ threads }: Figures): string {
  return threads.map(({ name, cpu_us_per_signal: us }) => `${name} ${us.toFixed(1)}`).join(", ");
}

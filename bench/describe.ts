/** Cells in words. */
import type { Figures } from "./cell.ts";
import { describeLoad, type Load } from "./load.ts";
import type { ServerName } from "./servers.ts";

/** Equal for cells that are rounds of one. A rate may differ, as half the maximum does. */
export function cellKey({
  server,
  load,
  fsync_ms,
}: {
  readonly server: ServerName;
  readonly load: Load;
  readonly fsync_ms: number;
}): string {
  return JSON.stringify([server, load.connections, load.kind, load.rate_per_s ?? null, fsync_ms]);
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

/** What is not as usual, after a comma. */
export function describeConditions({ fsync_ms, stored_before, stored }: Figures): string {
  const slow = fsync_ms === 0 || stored === null ? "" : `, fsync + ${fsync_ms} ms`;
  return stored_before === 0 ? slow : `${slow}, ${millions(stored_before)} M stored`;
}

export function describeThreads({ threads }: Figures): string {
  return threads.map(({ name, cpu_us_per_signal: us }) => `${name} ${us.toFixed(1)}`).join(", ");
}

function millions(count: number): string {
  return (count / 1e6).toFixed(count < 1e6 ? 2 : 0);
}

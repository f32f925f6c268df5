/** What is measured of one cell. */
import type { Load } from "./load.ts";
import type { ServerName } from "./servers.ts";
import type { Usage } from "./usage.ts";

export interface Figures extends Usage {
  readonly server: ServerName;
  readonly load: Load;
  readonly fsync_ms: number;
  /** Signals that the database had before. */
  readonly stored_before: number;
  readonly throughput_per_s: number;
  readonly latency_ms_p50: number;
  readonly latency_ms_p99: number;
  readonly latency_ms_p999: number;
  readonly latency_ms_max: number;
  /** From starting the process to having read the first signal's 201. */
  readonly start_ms: number;
  /** From then until it had nothing more to do; null where the load did not wait for that. */
  readonly settle_ms: number | null;
  /** Signals that were answered as stored, warm-up included. */
  readonly acknowledged: number;
  /** Rows that came to the database; null where nothing is stored. */
  readonly stored: number | null;
  /** On disk, of each stored signal, after the server has ended; null where nothing is stored. */
  readonly disk_bytes_per_signal: number | null;
}

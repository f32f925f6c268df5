/** The figures of one cell. */
import type { Load } from "./load.ts";
import type { ServerName } from "./servers.ts";
import type { Usage } from "./usage.ts";

export interface Figures extends Usage {
  readonly server: ServerName;
  readonly load: Load;
  /** Signals in the database before the cell. */
  readonly stored_before: number;
  readonly throughput_per_s: number;
  readonly latency_ms_p50: number;
  readonly latency_ms_p99: number;
  readonly latency_ms_max: number;
  /** From starting the process to having read the first signal's 201. */
  readonly start_ms: number;
  /** Signals that were answered as stored, warm-up included. */
  readonly acknowledged: number;
  /** Rows added to the database; null for a server without one. */
  readonly stored: number | null;
  /** Database and log, after the server has ended; null for a server without a database. */
  readonly disk_bytes_per_signal: number | null;
}

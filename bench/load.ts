/** The loads: which signals are sent, and how. */

/** UUID v7 rises with time; v4 is random, the worst case for the unique index. */
export const idKinds = ["v7", "v4"] as const;
export type IdKind = (typeof idKinds)[number];

export interface Load {
  readonly connections: number;
  readonly ids: IdKind;
  /** Requests per second of an open loop; undefined for a closed loop. */
  readonly rate_per_s?: number;
}

export interface Target {
  readonly port: number;
  readonly key: string;
}

/** Latency counts from writing the request (closed loop) or from when the request was due (open loop). */
export interface LoadResult {
  readonly requests: number;
  readonly duration_us: number;
  readonly latency_us_p50: number;
  readonly latency_us_p99: number;
  readonly latency_us_max: number;
  /** CPU time of the client. */
  readonly cpu_us: number;
}

export function newId(ids: IdKind): string {
  return ids === "v7" ? Bun.randomUUIDv7() : crypto.randomUUID();
}

/** A few words for tables and notes. */
export function describeLoad({ ids, rate_per_s }: Load): string {
  const rate = rate_per_s === undefined ? "" : `, ${rate_per_s.toLocaleString("en-US")}/s sent`;
  return `UUID ${ids}${rate}`;
}

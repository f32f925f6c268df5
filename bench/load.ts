/** The loads: what is sent, and how. */
/** UUID v7 rises with time; v4 is random, the worst case for the unique index. */
export const idKinds = ["v7", "v4"] as const;
export type IdKind = (typeof idKinds)[number];

/** New signals with ids of that kind, or requests that store nothing. */
export type LoadKind = IdKind | "duplicates" | "invalid" | "unauthorised";

export interface Load {
  readonly connections: number;
  readonly kind: LoadKind;
  /** Requests per second of an open loop; undefined for a closed loop. */
  readonly rate_per_s?: number;
}

export interface Target {
  readonly port: number;
  /** An unknown one for "unauthorised". */
  readonly key: string;
  /** Makes random ids differ between runs, and determines the ids of duplicates. */
  readonly seed: number;
}

/** Latency counts from writing the request (closed loop) or from when the request was due (open loop). */
export interface LoadResult {
  readonly requests: number;
  /** Requests answered with a status other than 2xx or 3xx. */
  readonly refused: number;
  readonly duration_us: number;
  readonly latency_us_p50: number;
  readonly latency_us_p99: number;
  readonly latency_us_p999: number;
  readonly latency_us_max: number;
  /** CPU time of the client. */
  readonly cpu_us: number;
}

/** Whether each request stores a new signal. */
export function isStored(kind: LoadKind): kind is IdKind {
  return kind === "v7" || kind === "v4";
}

/** The ids of the signals that a load stores, those it stores before the measurement included. */
export function idKindOf(kind: LoadKind): IdKind {
  return isStored(kind) ? kind : "v7";
}

export function newId(kind: IdKind): string {
  return kind === "v7" ? Bun.randomUUIDv7() : crypto.randomUUID();
}

/** A few words for tables and notes. */
export function describeLoad({ kind, rate_per_s }: Load): string {
  const ids = isStored(kind) ? `UUID ${kind}` : kind;
  return rate_per_s === undefined ? ids : `${ids}, ${rate_per_s.toLocaleString("en-US")}/s sent`;
}

/** The loads: what is sent, by whom, and what should come back. */
import { runClosedLoop } from "./closed-loop.ts";
import { runOpenLoop } from "./open-loop.ts";

/** What the requests are: all but the first two are answered without storing anything new. */
export type LoadKind = "random" | "rising" | "duplicates" | "invalid" | "unauthorised";

export interface Load {
  readonly connections: number;
  readonly kind: LoadKind;
  /** Requests a second that are sent whatever is answered (open loop); none: each waits for the last one's answer. */
  readonly rate_per_s?: number;
}

export interface Target {
  readonly port: number;
  /** What requests are sent with: an unknown one for "unauthorised". */
  readonly key: string;
  /** Of the ids; those of duplicates are made from it alone. */
  readonly seed: number;
}

/** Closed loop: from writing a request to having read its answer. Open loop: from when it was to be sent. */
export interface LoadResult {
  readonly requests: number;
  /** Answered with another status than 2xx or 3xx. */
  readonly refused: number;
  readonly duration_us: number;
  readonly latency_us_p50: number;
  readonly latency_us_p99: number;
  readonly latency_us_p999: number;
  readonly latency_us_max: number;
  /** The client's. */
  readonly cpu_us: number;
}

export function runLoad(
  wrk: string,
  target: Target,
  load: Load,
  seconds: number,
): Promise<LoadResult> {
  return load.rate_per_s === undefined
    ? runClosedLoop(wrk, target, load, seconds)
    : runOpenLoop(target, load, load.rate_per_s, seconds);
}

/** Whether a new signal is stored for each request. */
export function isStored(kind: LoadKind): boolean {
  return kind === "random" || kind === "rising";
}

/** Few words for tables and notes. */
export function describeLoad({ kind, rate_per_s }: Load): string {
  const ids = isStored(kind) ? `${kind} ids` : kind;
  return rate_per_s === undefined ? ids : `${ids}, ${rate_per_s.toLocaleString("en-US")}/s sent`;
}

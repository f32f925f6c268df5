/** Runs a load: a closed loop with wrk, or an open one. */
import { runClosedLoop } from "./closed-loop.ts";
import type { Load, LoadResult, Target } from "./load.ts";
import { runOpenLoop } from "./open-loop.ts";

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

/** The load: one run of wrk. */
import { randomInt } from "node:crypto";
import { join } from "node:path";
import { run } from "./process.ts";

export interface Load {
  readonly connections: number;
  readonly ids: "random" | "rising";
}

/** Times are wrk's own, from writing a request to having read its answer. */
export interface LoadResult {
  readonly requests: number;
  readonly duration_us: number;
  readonly latency_us_p50: number;
  readonly latency_us_p99: number;
  readonly latency_us_p999: number;
  readonly latency_us_max: number;
  readonly errors: Readonly<Record<"connect" | "read" | "write" | "status" | "timeout", number>>;
  readonly cpu_us: number;
}

/** One thread is enough: see the share of a core that wrk used, which is reported. */
export const WRK_THREADS = 1;

/**
 * How much longer than the run wrk would wait for an answer. It never does: a server that leaves a
 * connection waiting is to be seen in the latencies, and not to fail the benchmark.
 */
const REPLY_EXTRA_S = 5;
const GRACE_MS = 20_000;
const SEEDS = 2 ** 32;

/** Throws where a request failed or was refused: what follows would measure something else. */
export async function runLoad(
  wrk: string,
  target: { port: number; key: string },
  load: Load,
  seconds: number,
): Promise<LoadResult> {
  const flags = ["-t", String(WRK_THREADS), "-c", String(load.connections), "-d", `${seconds}s`];
  const timeout = ["--timeout", `${seconds + REPLY_EXTRA_S}s`];
  const script = ["-s", join(import.meta.dir, "wrk.lua")];
  const url = `http://127.0.0.1:${target.port}/v1/signals`;
  // Another seed for every run, so that no id is ever sent twice.
  const seed = String(randomInt(SEEDS));
  const { stdout, cpu_us } = await run(
    [wrk, ...flags, ...timeout, ...script, url, "--", load.ids, target.key, seed],
    { msMax: seconds * 1_000 + GRACE_MS },
  );
  const line = stdout.trim().split("\n").at(-1) ?? "";
  if (!line.startsWith("{")) throw new Error(`wrk gave no summary:\n${stdout}`);
  const result = JSON.parse(line) as Omit<LoadResult, "cpu_us">;
  if (Object.values(result.errors).some((count) => count > 0)) {
    throw new Error(`requests failed, by kind: ${JSON.stringify(result.errors)}`);
  }
  if (result.requests === 0) throw new Error("no request was answered");
  return { ...result, cpu_us };
}

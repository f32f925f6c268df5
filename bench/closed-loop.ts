/** Closed loop: one run of wrk, each connection of which sends when its last request was answered. */
import { randomInt } from "node:crypto";
import { join } from "node:path";
import type { Load, LoadResult, Target } from "./load.ts";
import { run } from "./process.ts";
import { body, ID_PLACEHOLDER } from "./signal.ts";

/** One thread is enough: see the share of a core that wrk used, which is reported. */
const WRK_THREADS = 1;

/**
 * How much longer than the run wrk would wait for an answer. It never does: a server that leaves a
 * connection waiting is to be seen in the latencies, and not to fail the benchmark.
 */
const REPLY_EXTRA_S = 5;
const GRACE_MS = 20_000;

type Errors = Readonly<Record<"connect" | "read" | "write" | "status" | "timeout", number>>;
type Summary = Omit<LoadResult, "cpu_us"> & { readonly errors: Errors };

/** Throws where a request failed: what follows would measure something else. */
export async function runClosedLoop(
  wrk: string,
  { port, key }: Target,
  { connections, ids }: Load,
  seconds: number,
): Promise<LoadResult> {
  const flags = ["-t", String(WRK_THREADS), "-c", String(connections), "-d", `${seconds}s`];
  const timeout = ["--timeout", `${seconds + REPLY_EXTRA_S}s`];
  const script = ["-s", join(import.meta.dir, "wrk.lua"), `http://127.0.0.1:${port}/v1/signals`];
  // Random, so that no id is ever sent twice.
  const seed = String(randomInt(2 ** 32));
  const { stdout, cpu_us } = await run(
    [wrk, ...flags, ...timeout, ...script, "--", ids, key, seed, ID_PLACEHOLDER, body],
    { msMax: seconds * 1_000 + GRACE_MS },
  );
  const line = stdout.trim().split("\n").at(-1) ?? "";
  if (!line.startsWith("{")) throw new Error(`wrk gave no summary:\n${stdout}`);
  const { errors, ...result } = JSON.parse(line) as Summary;
  if (Object.values(errors).some((count) => count > 0)) {
    throw new Error(`requests failed, by kind: ${JSON.stringify(errors)}`);
  }
  return { ...result, cpu_us };
}

/** Open loop: one run of open-schedule.ts, in a process of its own so that nothing here delays it. */
import { join } from "node:path";
import type { Load, LoadResult, Target } from "./load.ts";
import { ANSWER_MS_MAX, type OpenLoad, type OpenResult } from "./open-schedule.ts";
import { run } from "./process.ts";

const GRACE_MS = ANSWER_MS_MAX + 20_000;

/** Throws where a request failed or was never answered. */
export async function runOpenLoop(
  target: Target,
  { connections, ids }: Load,
  rate_per_s: number,
  seconds: number,
): Promise<LoadResult> {
  const load: OpenLoad = { ...target, connections, ids, rate_per_s, seconds };
  const client = join(import.meta.dir, "open-schedule.ts");
  const { stdout, cpu_us } = await run([process.execPath, client, JSON.stringify(load)], {
    msMax: seconds * 1_000 + GRACE_MS,
  });
  return { ...(JSON.parse(stdout) as OpenResult), cpu_us };
}

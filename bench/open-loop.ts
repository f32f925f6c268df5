/** Open loop: one run of open-client.ts, in a process of its own so that nothing here delays it. */
import { join } from "node:path";
import { idKindOf, type Load, type LoadResult, type Target } from "./load.ts";
import { ANSWER_MS_MAX, type OpenLoad, type OpenResult } from "./open-schedule.ts";
import { run } from "./process.ts";
import { bodyOf } from "./signal.ts";

const GRACE_MS = ANSWER_MS_MAX + 20_000;

/** Throws where a request failed or was never answered. */
export async function runOpenLoop(
  { port, key }: Target,
  { connections, kind }: Load,
  rate_per_s: number,
  seconds: number,
): Promise<LoadResult> {
  const load: OpenLoad = {
    port,
    key,
    connections,
    rate_per_s,
    seconds,
    ids: idKindOf(kind),
    body: bodyOf(kind),
  };
  const client = join(import.meta.dir, "open-client.ts");
  const { stdout, cpu_us } = await run([process.execPath, client, JSON.stringify(load)], {
    msMax: seconds * 1_000 + GRACE_MS,
  });
  return { ...(JSON.parse(stdout) as OpenResult), cpu_us };
}

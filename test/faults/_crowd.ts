/** Starts the programs of a crowd, and an honest client beside it; what each has seen when it ends. */
import { join } from "node:path";
import { onCleanup } from "../_setup.ts";
import type { GuestOptions, GuestResult } from "./_guests.ts";
import type { HonestOptions, HonestResult } from "./_honest.ts";

export interface Running<Result> {
  /** Ends the program; its connections are open until then. */
  readonly end: () => Promise<Result>;
}

export function startGuests(options: GuestOptions): Running<GuestResult> {
  return start("_guests.ts", options);
}

export function startHonest(options: HonestOptions): Running<HonestResult[]> {
  return start("_honest.ts", options);
}

function start<Result>(program: string, options: unknown): Running<Result> {
  const child = Bun.spawn(
    [process.execPath, join(import.meta.dir, program), JSON.stringify(options)],
    { stdin: "pipe", stdout: "pipe", stderr: "inherit" },
  );
  onCleanup(async () => {
    if (child.exitCode === null) child.kill("SIGKILL");
    await child.exited;
  });
  return {
    end: async () => {
      await child.stdin.end();
      return JSON.parse(await new Response(child.stdout).text()) as Result;
    },
  };
}

/** Median and worst of the honest client's latencies, in words. */
export function describeLatency(results: readonly HonestResult[]): string {
  const sorted = results.map(({ latencyMs }) => latencyMs).toSorted((a, b) => a - b);
  const at = (share: number): string =>
    (sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN).toFixed(
      1,
    );
  const retries = results.reduce((sum, { unanswered }) => sum + unanswered, 0);
  return `${results.length} answered, ${retries} retries, p50 ${at(0.5)} ms, p99 ${at(0.99)} ms, worst ${at(1)} ms`;
}

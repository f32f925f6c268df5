/** Where the CPU time goes, by thread: profiles of Signalbox at 256 connections with UUID v7. */
import { mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { type Cell, measureCell } from "./cell.ts";
import type { Figures } from "./figures.ts";
import { describeCell } from "./describe.ts";
import { readThreadCpuUs } from "./proc.ts";
import { run } from "./process.ts";
import { note, signalboxFromSource, type Tools } from "./tools.ts";

/** Samples a second; not a divisor of what timers do. */
const SAMPLES_PER_S = 997;
const GRACE_MS = 60_000;

/** Two runs: all threads of the executable with perf, and the main thread's JavaScript, from source. */
export async function profile(
  tools: Tools,
  { seconds, profileFolder, folder }: { seconds: number; profileFolder: string; folder: string },
): Promise<Figures[]> {
  const out = resolve(profileFolder);
  mkdirSync(out, { recursive: true });
  const load = { connections: 256, ids: "v7" } as const;
  const cell: Cell = { server: "signalbox", load, seconds, hasWarmUp: true, stored: null };
  note(`profiling into ${out}`);
  const cells = [await profileMainThread(tools, cell, out, folder)];
  if (tools.perf === null) note("  perf is missing, with which all threads are seen: linux-perf");
  else cells.push(await profileThreads(tools, tools.perf, cell, out, folder));
  for (const figures of cells) note(`  ${describeCell(figures)}`);
  note(`  wrote ${readdirSync(out).join(", ")}`);
  return cells;
}

/** Bun's own profiler knows the names of functions, but of the main thread only. */
function profileMainThread(tools: Tools, cell: Cell, out: string, folder: string) {
  const [bun = "", ...main] = signalboxFromSource;
  const flags = ["--cpu-prof", "--cpu-prof-md", "--cpu-prof-dir", out];
  const serve = [bun, ...flags, ...main];
  return measureCell({ ...tools, signalbox: signalboxFromSource, serve }, cell, folder);
}

/** perf sees the native code and the kernel, in every thread. */
function profileThreads(tools: Tools, perf: string, cell: Cell, out: string, folder: string) {
  const data = join(out, "perf.data");
  return measureCell(tools, cell, folder, async (pid, seconds) => {
    const threads = readThreadCpuUs(pid);
    const what = ["-F", String(SAMPLES_PER_S), "-g", "-p", String(pid), "-o", data];
    await run([perf, "record", "-q", ...what, "--", "sleep", String(seconds)], {
      msMax: seconds * 1_000 + GRACE_MS,
    });
    const report = [perf, "report", "-i", data, "--stdio", "--no-children", "-g", "none"];
    const all = await run([...report, "--sort", "pid,dso"]);
    writeFileSync(join(out, "threads.txt"), all.stdout);
    for (const [thread, { name }] of threads) {
      await reportThread(report, thread, join(out, `${fileName(name)}-${thread}.txt`));
    }
  });
}

/** Nothing is written of a thread that had nothing to do. */
async function reportThread(report: string[], thread: number, file: string): Promise<void> {
  const { stdout } = await run([...report, "--sort", "dso,symbol", "--tid", String(thread)]);
  if (/^\s+\d/m.test(stdout)) writeFileSync(file, stdout);
}

function fileName(threadName: string): string {
  return threadName.replaceAll(/[^\w-]+/g, "-");
}

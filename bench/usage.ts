/** CPU and memory during a load: of the server, the load generator and everything else. */
import type { LoadResult } from "./load.ts";
import { readCpuUs, readMachineCpuUs, readPeakMemoryMib, readThreadCpuUs } from "./proc.ts";

/** Threads below this, in microseconds per signal, are left out. */
const THREAD_CPU_US_MIN = 0.1;

export interface Usage {
  /** The server's, all threads. */
  readonly cpu_us_per_signal: number;
  /** The same by thread, most first. */
  readonly threads: readonly { readonly name: string; readonly cpu_us_per_signal: number }[];
  /** From the start of the process. */
  readonly memory_mib_peak: number;
  /** Share of one core that the load generator used; near 1, the load generator was the limit. */
  readonly client_cpu_share: number;
  /** Cores used by other processes: the noise. */
  readonly other_cpu_cores: number;
}

/** Runs the load and measures during it. */
export async function watchUsage(
  pid: number,
  load: () => Promise<LoadResult>,
): Promise<readonly [LoadResult, Usage]> {
  const from = read(pid);
  const result = await load();
  const to = read(pid);
  const { requests, duration_us } = result;
  const cpu_us = to.cpu_us - from.cpu_us;
  const other_us = to.machine_us - from.machine_us - cpu_us - result.cpu_us;
  const usage: Usage = {
    cpu_us_per_signal: cpu_us / requests,
    threads: threadsBetween(from, to, requests),
    memory_mib_peak: readPeakMemoryMib(pid),
    client_cpu_share: result.cpu_us / duration_us,
    other_cpu_cores: Math.max(0, other_us) / duration_us,
  };
  return [result, usage];
}

function read(pid: number) {
  return {
    cpu_us: readCpuUs(pid),
    machine_us: readMachineCpuUs(),
    threads: readThreadCpuUs(pid),
  };
}

type Reading = ReturnType<typeof read>;

function threadsBetween(from: Reading, to: Reading, requests: number): Usage["threads"] {
  return [...to.threads]
    .map(([id, { name, cpu_us }]) => ({
      name,
      cpu_us_per_signal: (cpu_us - (from.threads.get(id)?.cpu_us ?? 0)) / requests,
    }))
    .filter(({ cpu_us_per_signal }) => cpu_us_per_signal >= THREAD_CPU_US_MIN)
    .toSorted((a, b) => b.cpu_us_per_signal - a.cpu_us_per_signal);
}

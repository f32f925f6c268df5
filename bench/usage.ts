/** What a load takes of the machine: the server's part of it, the load generator's and the others'. */
import type { LoadResult } from "./load.ts";
import { readCpuUs, readMachineCpuUs, readMemoryMib, readThreadCpuUs } from "./proc.ts";

/** Threads that took less, in microseconds a signal, are of no interest. */
const THREAD_CPU_US_MIN = 0.1;

export interface Usage {
  /** The server's, all threads. */
  readonly cpu_us_per_signal: number;
  /** The same by thread, most first. */
  readonly threads: readonly { readonly name: string; readonly cpu_us_per_signal: number }[];
  /** From the start of the process. */
  readonly memory_mib_peak: number;
  /** In the middle of the load, and at its end. */
  readonly memory_mib_halfway: number;
  readonly memory_mib_end: number;
  /** Of the core that the load generator could fill; near 1, it is what was measured. */
  readonly client_cpu_share: number;
  /** Cores that were busy with neither the server nor the load generator: the noise. */
  readonly other_cpu_cores: number;
}

/** Runs the load, which takes about so many seconds. */
export async function watchUsage(
  pid: number,
  seconds: number,
  load: () => Promise<LoadResult>,
): Promise<readonly [LoadResult, Usage]> {
  const from = read(pid);
  const [result, memory_mib_halfway] = await Promise.all([
    load(),
    Bun.sleep(seconds * 500).then(() => readMemoryMib(pid, "now")),
  ]);
  const to = read(pid);
  const { requests, duration_us } = result;
  const cpu_us = to.cpu_us - from.cpu_us;
  const other_us = to.machine_us - from.machine_us - cpu_us - result.cpu_us;
  const usage: Usage = {
    cpu_us_per_signal: cpu_us / requests,
    threads: threadsBetween(from, to, requests),
    memory_mib_peak: readMemoryMib(pid, "peak"),
    memory_mib_halfway,
    memory_mib_end: readMemoryMib(pid, "now"),
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

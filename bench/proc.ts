/** What Linux tells of a process and of the machine (proc(5)). */
import { readdirSync, readFileSync } from "node:fs";

/** USER_HZ is 100 on every architecture that Bun runs on. */
const TICK_US = 10_000;

/** CPU time of a process so far, user and system, all threads. */
export function readCpuUs(pid: number): number {
  return readStat(`/proc/${pid}/stat`).cpu_us;
}

export interface ThreadCpu {
  /** "main" for the first, which answers HTTP; else what the runtime calls it, as in "Worker". */
  readonly name: string;
  readonly cpu_us: number;
}

/** The same by thread, keyed by the thread's id. Threads that have ended are not in it. */
export function readThreadCpuUs(pid: number): Map<number, ThreadCpu> {
  const ids = readdirSync(`/proc/${pid}/task`).map(Number);
  return new Map(
    ids.map((id) => {
      const { name, cpu_us } = readStat(`/proc/${pid}/task/${id}/stat`);
      return [id, { name: id === pid ? "main" : name, cpu_us }];
    }),
  );
}

function readStat(file: string): ThreadCpu {
  const stat = readFileSync(file, "utf8");
  // The second field is the program's name in brackets, and may contain anything.
  const nameEnd = stat.lastIndexOf(")");
  const fields = stat.slice(nameEnd + 2).split(" ");
  const [userTicks, systemTicks] = [fields[11], fields[12]];
  return {
    name: stat.slice(stat.indexOf("(") + 1, nameEnd),
    cpu_us: (Number(userTicks) + Number(systemTicks)) * TICK_US,
  };
}

/** The most RAM that a process has had so far, shared pages included. */
export function readPeakMemoryMib(pid: number): number {
  const status = readFileSync(`/proc/${pid}/status`, "utf8");
  const kib = /^VmHWM:\s+(\d+) kB$/m.exec(status)?.[1];
  if (kib === undefined) throw new Error(`/proc/${pid}/status has no VmHWM`);
  return Number(kib) / 1_024;
}

/** CPU time that the whole machine has spent so far, what a hypervisor gave to others included. */
export function readMachineCpuUs(): number {
  const line = readFileSync("/proc/stat", "utf8").split("\n", 1)[0] ?? "";
  const [user = 0, nice = 0, system = 0, , , irq = 0, softirq = 0, steal = 0] = line
    .split(/\s+/)
    .slice(1)
    .map(Number);
  return (user + nice + system + irq + softirq + steal) * TICK_US;
}

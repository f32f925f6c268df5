/** What Linux tells of a process and of the machine (proc(5)). */
import { readFileSync } from "node:fs";

/** USER_HZ is 100 on every architecture that Bun runs on. */
const TICK_US = 10_000;

/** CPU time of a process so far, user and system, all threads. */
export function readCpuUs(pid: number): number {
  const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
  // The second field is the program's name in brackets, and may contain anything.
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  const [userTicks, systemTicks] = [fields[11], fields[12]];
  return (Number(userTicks) + Number(systemTicks)) * TICK_US;
}

/** The most memory that a process has had in RAM so far, shared pages included. */
export function readMemoryMibPeak(pid: number): number {
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

/** Waits until a server that nobody uses has nothing to do any more. */
import { readCpuUs } from "./proc.ts";

const LOOK_MS = 500;
/** Of a core: timers and the runtime's own threads take some. */
const IDLE_CPU_SHARE_MAX = 0.05;
const SETTLE_MS_MAX = 600_000;

/** Returns how long that took. */
export async function settle(pid: number): Promise<number> {
  const start = performance.now();
  for (let now = start, cpu_us = readCpuUs(pid); now - start < SETTLE_MS_MAX;) {
    await Bun.sleep(LOOK_MS);
    const [before, before_us] = [now, cpu_us];
    now = performance.now();
    cpu_us = readCpuUs(pid);
    if ((cpu_us - before_us) / ((now - before) * 1_000) <= IDLE_CPU_SHARE_MAX)
      return before - start;
  }
  throw new Error(`the server was still busy after ${SETTLE_MS_MAX / 1_000} s without a request`);
}

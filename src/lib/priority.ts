/** The priority of what must not slow the server. */
import { setPriority } from "node:os";

/** Lower than the server's. */
const NICENESS = 10;

/** 0: this process. */
export function lowerPriority(pid = 0): void {
  try {
    setPriority(pid, NICENESS);
  } catch {
    // If the system forbids it, a backup at full speed is better than none.
  }
}

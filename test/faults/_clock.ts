/** A wall clock that a test sets, for a whole process and while it runs: Debian's libfaketime. */
import { Glob } from "bun";
import { readdirSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { onCleanup, temporaryFolder } from "../_setup.ts";

const SHARED_MEMORY = "/dev/shm";

export interface TestClock {
  /** For the processes that shall go by it. */
  readonly env: Record<string, string>;
  /** Sets it so far from the machine's own, in milliseconds: whole seconds. */
  readonly set: (offsetMs: number) => void;
  /** Epoch milliseconds. */
  readonly now: () => number;
}

/** Starts with the machine's time. The monotonic clock, of timers and time-outs, is left as it is. */
export function startClock(): TestClock {
  const [library] = new Glob("/usr/lib/*/faketime/libfaketimeMT.so.1").scanSync();
  if (library === undefined) throw new Error("Debian's package libfaketime has moved its library");
  const file = join(temporaryFolder(), "offset");
  let offsetMs = 0;
  const set = (milliseconds: number): void => {
    offsetMs = milliseconds;
    // Renamed into place: a process that reads it in between must not find it empty.
    writeFileSync(
      `${file}.new`,
      `${milliseconds < 0 ? "-" : "+"}${Math.abs(milliseconds) / 1_000}`,
    );
    renameSync(`${file}.new`, file);
  };
  set(0);
  onCleanup(removeRemains);
  return {
    env: {
      LD_PRELOAD: library,
      FAKETIME_TIMESTAMP_FILE: file,
      FAKETIME_NO_CACHE: "1",
      DONT_FAKE_MONOTONIC: "1",
    },
    set,
    now: () => Date.now() + offsetMs,
  };
}

/** What the library leaves of processes that end without running its last function. */
function removeRemains(): void {
  for (const name of readdirSync(SHARED_MEMORY)) {
    const pid = /^(?:sem\.)?faketime_(?:sem|shm)_(\d+)$/.exec(name)?.[1];
    if (pid !== undefined && !isAlive(Number(pid))) rmSync(join(SHARED_MEMORY, name));
  }
}

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}

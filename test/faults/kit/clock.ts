/** A wall clock that a test sets for running processes, with Debian's libfaketime. */
import { Glob } from "bun";
import { readdirSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { onCleanup, temporaryFolder } from "../../kit/setup.ts";

const SHARED_MEMORY = "/dev/shm";

export interface TestClock {
  /** For the processes that use it. */
  readonly env: Record<string, string>;
  /** Sets the distance from the machine's clock, in milliseconds: whole seconds. */
  readonly set: (offsetMs: number) => void;
  /** Epoch milliseconds. */
  readonly now: () => number;
}

/** Starts with the machine's time. The monotonic clock, used by timers, stays real. */
export function startClock(): TestClock {
  const [library] = new Glob("/usr/lib/*/faketime/libfaketimeMT.so.1").scanSync();
  if (library === undefined)
    throw new Error("libfaketimeMT.so.1 is missing: reinstall libfaketime");
  const file = join(temporaryFolder(), "offset");
  let offsetMs = 0;
  const set = (milliseconds: number): void => {
    offsetMs = milliseconds;
    // Renamed into place, because processes read the file at any moment.
    const sign = milliseconds < 0 ? "-" : "+";
    writeFileSync(`${file}.new`, `${sign}${Math.abs(milliseconds) / 1_000}`);
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

/** The library leaves shared memory behind when a process is killed. */
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

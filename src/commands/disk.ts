/** What `status` and `doctor` find out about the disk of the data folder. */
import { closeSync, fsyncSync, openSync, rmSync, statfsSync, writeSync } from "node:fs";
import { join } from "node:path";
import { onStopSignals } from "./stop-signal.ts";

/** A fixed name, so that the next probe removes what a SIGKILL has left. */
const PROBE_NAME = ".doctor.signalbox-partial";
const PROBE_BYTES = 4_096;
const SYNCS = 15;
const PROBE_MS_MAX = 3_000;

export interface FileSystem {
  readonly name: string;
  readonly kind: "network" | "memory" | "container" | "fuse";
}

/** Those that a database should not be on, by their number: https://man7.org/linux/man-pages/man2/statfs.2.html */
const fileSystems: Readonly<Record<number, FileSystem>> = {
  0x517b: { name: "smb", kind: "network" },
  0x6969: { name: "nfs", kind: "network" },
  0x00c36400: { name: "ceph", kind: "network" },
  0x01021997: { name: "9p", kind: "network" },
  0x0bd00bd0: { name: "lustre", kind: "network" },
  0x47504653: { name: "gpfs", kind: "network" },
  0x5346414f: { name: "afs", kind: "network" },
  0x786f4256: { name: "vboxsf", kind: "network" },
  0xfe534d42: { name: "smb2", kind: "network" },
  0xff534d42: { name: "cifs", kind: "network" },
  0x01021994: { name: "tmpfs", kind: "memory" },
  0x858458f6: { name: "ramfs", kind: "memory" },
  0x794c7630: { name: "overlay", kind: "container" },
  0x65735546: { name: "fuse", kind: "fuse" },
};

/** `type`: as statfs(2) of Linux gives it. Null for a local file system. */
export function fileSystemOf(type: number): FileSystem | null {
  return fileSystems[type >>> 0] ?? null;
}

/** Returns the space that this user can still use. */
export function freeBytes(dir: string): number {
  const { bavail, bsize } = statfsSync(dir);
  return bavail * bsize;
}

/** Returns the median time of an fsync in a folder, in milliseconds. Always removes its file. */
export async function measureFsync(dir: string): Promise<number> {
  // A handler runs after the probe, which is synchronous and removes its file.
  const endHandling = onStopSignals(() => process.exit(1));
  try {
    const times = probe(join(dir, PROBE_NAME));
    await Bun.sleep(1);
    return median(times);
  } finally {
    endHandling();
  }
}

function probe(path: string): number[] {
  rmSync(path, { force: true });
  const file = openSync(path, "wx", 0o600);
  try {
    const page = Buffer.alloc(PROBE_BYTES, 1);
    const times: number[] = [];
    const deadline = performance.now() + PROBE_MS_MAX;
    for (let at = 0; times.length < SYNCS; at += PROBE_BYTES) {
      writeSync(file, page, 0, page.length, at);
      const startedAt = performance.now();
      fsyncSync(file);
      const endedAt = performance.now();
      times.push(endedAt - startedAt);
      if (endedAt > deadline) break;
    }
    return times;
  } finally {
    closeSync(file);
    rmSync(path, { force: true });
  }
}

/** Of at least one value. */
export function median(values: readonly number[]): number {
  const sorted = values.toSorted((one, other) => one - other);
  return sorted[Math.floor(sorted.length / 2)] ?? Number.NaN;
}

/** The machine, in one line: figures without it mean nothing. */
import { closeSync, fdatasyncSync, openSync, statfsSync, writeSync } from "node:fs";
import { cpus, release } from "node:os";
import { join } from "node:path";
import { median } from "./statistics.ts";

const FSYNC_SAMPLES = 100;
const PAGE_BYTES = 4_096;

/** `f_type` of statfs(2). */
const fileSystems: Readonly<Record<number, string>> = {
  0xef53: "ext4",
  0x58465342: "xfs",
  0x9123683e: "btrfs",
  0x2fc12fc1: "zfs",
  0x794c7630: "overlayfs",
  0x01021994: "tmpfs, where an fsync costs nothing",
};

export function describeMachine(folder: string): string {
  const processors = cpus();
  const model = processors[0]?.model ?? "unknown CPU";
  const fileSystem = fileSystems[statfsSync(folder).type] ?? "another file system";
  return [
    `${model}, ${processors.length} cores`,
    `Linux ${release()}`,
    `${fileSystem}, fsync of a page ${measureFsyncMs(folder).toFixed(2)} ms`,
    `Bun ${Bun.version}`,
  ].join("; ");
}

/** The median time to append a page and have it on disk: a commit's lower bound here. */
function measureFsyncMs(folder: string): number {
  const file = openSync(join(folder, "fsync"), "w");
  const page = new Uint8Array(PAGE_BYTES);
  const samples = Array.from({ length: FSYNC_SAMPLES }, () => {
    const start = performance.now();
    writeSync(file, page);
    fdatasyncSync(file);
    return performance.now() - start;
  });
  closeSync(file);
  return median(samples);
}

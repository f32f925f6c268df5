/** The disk of the data folder, and what lies on it. */
import { closeSync, existsSync, fsyncSync, openSync, rmSync, writeSync } from "node:fs";
import { statfs } from "node:fs/promises";
import { join } from "node:path";
import { messageOf } from "../lib/errors.ts";
import { shellQuoted } from "../lib/text/shell.ts";
import { formatBytes } from "../lib/text/words.ts";
import { findWrongPermissions } from "../store/open.ts";
import { type Context, type Finding, ok, problem, stop, warning } from "./finding.ts";

/** With less, the log and its checkpoint may not fit. */
export const DISK_FREE_BYTES_MIN = 128 * 1024 * 1024;
/** Eight times what signals need. */
export const DISK_LOW_BYTES = 8 * DISK_FREE_BYTES_MIN;
/** A batch of signals waits for one fsync: 1 to 5 ms on a cloud volume. */
const FSYNC_MS_MAX = 20;
/** More than a backup of 10 million signals makes it grow to (docs/operations.md). */
const LOG_BYTES_MAX = 512 * 1024 * 1024;

/** A fixed name, so that the next probe removes what a SIGKILL has left. */
const PROBE_NAME = ".doctor.signalbox-partial";
const PROBE_BYTES = 4_096;
const SYNCS = 15;
const PROBE_MS_MAX = 2_000;
const STOP_SIGNALS = ["SIGINT", "SIGTERM"] as const;

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

/** Returns the space that this user can still use. A network disk may never answer. */
export async function freeBytes(dir: string): Promise<number> {
  const { bavail, bsize } = await statfs(dir);
  return bavail * bsize;
}

/** The disk of another database is its own server's. */
export async function checkSpace({ dataDir, files }: Context): Promise<Finding | null> {
  if (files === null) return null;
  let free;
  try {
    free = await freeBytes(dataDir);
  } catch (error) {
    return stop(`The disk does not answer: ${messageOf(error)}.`, "look at that disk");
  }
  if (free >= DISK_LOW_BYTES) return ok(`${formatBytes(free)} are free.`);
  const sentence = `The disk has ${formatBytes(free)} left; below ${formatBytes(DISK_FREE_BYTES_MIN)} signals may be refused.`;
  const find = free < DISK_FREE_BYTES_MIN ? stop : warning;
  return find(sentence, "free some space");
}

const LOCAL_DISK = "move the data folder to a local disk, with ext4 or xfs";

const risks: Readonly<Record<FileSystem["kind"], Omit<Finding, "severity">>> = {
  network: { sentence: "locks and fsync are not reliable on a network.", next: LOCAL_DISK },
  memory: { sentence: "a restart of the machine loses everything in memory.", next: LOCAL_DISK },
  container: { sentence: "it is lost with the container.", next: "put it on a volume" },
  fuse: { sentence: "this may be a network.", next: "make sure that it is a local disk" },
};

export async function checkFileSystem({ dataDir, files }: Context): Promise<Finding | null> {
  if (files === null) return null;
  if (process.platform !== "linux") return ok("Only checked on Linux.");
  const fileSystem = fileSystemOf((await statfs(dataDir)).type);
  if (fileSystem === null) return ok("The data folder is on a local disk.");
  const { name, kind } = fileSystem;
  const { sentence, next } = risks[kind];
  const severity = kind === "network" || kind === "memory" ? "problem" : "warning";
  return { severity, sentence: `The data folder is on ${name}: ${sentence}`, next };
}

export async function checkFsync({ dataDir, files }: Context): Promise<Finding | null> {
  if (files === null) return null;
  const time = await measureFsync(dataDir);
  const sentence = `An fsync takes ${time.toFixed(time < 10 ? 2 : 0)} ms.`;
  if (time <= FSYNC_MS_MAX) return ok(sentence);
  const next = "look for what else uses the disk, or use a faster one";
  return warning(`${sentence} Every signal waits for at least one.`, next);
}

export function checkPermissions({ dataDir, files: own }: Context): Finding | null {
  // The first server of another database makes it.
  if (own === null && !existsSync(dataDir)) return null;
  const { foreign, wrongMode } = findWrongPermissions(dataDir);
  if (foreign[0] !== undefined) {
    const files = foreign.map(shellQuoted).join(" ");
    return problem(
      `${foreign[0]} belongs to another user.`,
      `sudo chown -h ${process.geteuid?.()} ${files}`,
    );
  }
  const [first] = wrongMode;
  if (first === undefined) return ok("Only the server's user can access the data folder.");
  const files = wrongMode.map(({ path }) => shellQuoted(path)).join(" ");
  return problem(`${first.path} has mode ${first.mode}.`, `chmod u+rwX,go= ${files}`);
}

export function checkLog({ dataDir, files, config }: Context): Finding | null {
  if (files === null) return null;
  const bytes = files.logBytes(dataDir);
  const sentence = `The write-ahead log has ${formatBytes(bytes)}.`;
  if (bytes <= LOG_BYTES_MAX) return ok(sentence);
  return warning(
    sentence,
    config?.externalCheckpoints === true
      ? "see that the program that does the checkpoints runs"
      : "end what has been reading the database for long, such as sqlite3; it then shrinks",
  );
}

/** Returns the median time of an fsync in a folder, in milliseconds. Always removes its file. */
export async function measureFsync(dir: string): Promise<number> {
  // A handler runs after the probe, which is synchronous and removes its file.
  for (const signal of STOP_SIGNALS) process.on(signal, end);
  try {
    const times = probe(join(dir, PROBE_NAME));
    await Bun.sleep(1);
    return median(times);
  } finally {
    for (const signal of STOP_SIGNALS) process.off(signal, end);
  }
}

function end(): never {
  process.exit(1);
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

/** File systems for one test, on a loop device or in memory, and a disk that can lose its power. */
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statfsSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { onCleanup, temporaryFolder } from "../../kit/setup.ts";

const MIB = 1024 * 1024;

/** Longer than any test, so that no write-back happens because of age. */
const NEVER_S = 3_600;

const UNMOUNT_TRIES_MAX = 200;
const UNMOUNT_RETRY_MS = 50;

/** An ext4 file system, unmounted after the test. Returns its mount point. */
export function mountDisk(sizeMib: number): string {
  const folder = temporaryFolder();
  return mount(makeImage(join(folder, "disk.img"), sizeMib), join(folder, "mnt"), []);
}

/** A file system in memory, unmounted after the test. Returns its mount point. */
export function mountMemory(sizeMib: number): string {
  const where = join(temporaryFolder(), "mnt");
  mkdirSync(where);
  must(["mount", "-t", "tmpfs", "-o", `size=${sizeMib}m`, "tmpfs", where]);
  unmountLater(where);
  return where;
}

/** Another user of the disk takes all of it, but for so much. Returns how to make room again. */
export function fillDisk(where: string, leftMib = 0): () => void {
  const filler = join(where, "filler");
  const bytesFree = () => statfsSync(where).bavail * statfsSync(where).bsize;
  // Half of the rest each time, because others write meanwhile.
  for (let size = 0, free = bytesFree(); free > leftMib * MIB; free = bytesFree()) {
    const more = Math.floor((free - leftMib * MIB) / 2);
    if (run(["fallocate", "-o", `${size}`, "-l", `${more}`, filler]) === null) size += more;
  }
  return () => rmSync(filler);
}

/** Like a disk on which the kernel has found an error. */
export function makeReadOnly(where: string): void {
  must(["mount", "-o", "remount,ro", where]);
}

/**
 * A disk with a volatile write cache, in three layers:
 *
 * 1. `platter.img`, a file of this machine: what survives a power cut.
 * 2. An ext4 on it that holds one file, `disk.img`. Its page cache is the disk's write cache: a FLUSH of
 *    the disk is an fsync of that file (drivers/block/loop.c).
 * 3. An ext4 on `disk.img`, which holds the data folder. Its page cache is the machine's memory.
 *
 * So a copy of `platter.img` holds only what was both written and flushed before that moment.
 */
export class FragileDisk {
  readonly #barriers: boolean;
  #folder = "";
  #root = "";

  /** `barriers: false`: the file system does not flush the disk's cache. */
  constructor(sizeMib: number, { barriers = true } = {}) {
    this.#barriers = barriers;
    const folder = temporaryFolder();
    const platter = makeImage(join(folder, "platter.img"), sizeMib + sizeMib / 4);
    const cache = mount(platter, join(folder, "cache"), []);
    makeImage(join(cache, "disk.img"), sizeMib);
    unmount(cache);
    this.#start(folder);
  }

  /** The mount point; another one after each power cut. */
  get root(): string {
    return this.#root;
  }

  /** Writes everything to the platter, so that a control has a database to start with. */
  settle(): void {
    for (const where of [this.#root, join(this.#folder, "cache")]) must(["sync", "-f", where]);
  }

  /** Stops a process when its system calls have returned, so that each answer is before or after the cut. */
  async freeze(pid: number): Promise<void> {
    process.kill(pid, "SIGSTOP");
    while (!threadStates(pid).every((state) => state === "T")) await Bun.sleep(1);
  }

  /** Cuts the power of a frozen process and this disk, and mounts what is left. */
  async cutPower(pid: number): Promise<void> {
    const left = temporaryFolder();
    const devices = [deviceOf(this.#root), deviceOf(join(this.#folder, "cache"))];
    const written = () => devices.map((device) => writesOf(device)).join();
    let before;
    // Repeats if the kernel has written during the copy.
    do {
      before = written();
      must(["cp", "--sparse=always", join(this.#folder, "platter.img"), left]);
    } while (written() !== before);
    process.kill(pid, "SIGKILL");
    await untilGone(pid);
    unmount(this.#root);
    unmount(join(this.#folder, "cache"));
    rmSync(this.#folder, { recursive: true });
    this.#start(left);
  }

  /** Mounting replays both journals. */
  #start(folder: string): void {
    this.#folder = folder;
    const cache = mount(join(folder, "platter.img"), join(folder, "cache"), [
      "nobarrier",
      `commit=${NEVER_S}`,
    ]);
    this.#root = mount(join(cache, "disk.img"), join(folder, "root"), [
      `commit=${NEVER_S}`,
      this.#barriers ? "barrier" : "nobarrier",
    ]);
  }
}

/** Initialises everything at once: ext4 would do it later, and write at any moment. */
function makeImage(path: string, sizeMib: number): string {
  writeFileSync(path, "");
  truncateSync(path, sizeMib * MIB);
  must(["mkfs.ext4", "-q", "-F", "-m", "0", "-E", "lazy_itable_init=0,lazy_journal_init=0", path]);
  return path;
}

function mount(image: string, where: string, options: readonly string[]): string {
  mkdirSync(where, { recursive: true });
  must(["mount", "-t", "ext4", "-o", ["loop", ...options].join(), image, where]);
  unmountLater(where);
  return where;
}

function unmountLater(where: string): void {
  onCleanup(() => {
    if (isMounted(where)) unmount(where);
  });
}

/** Retries: a loop device releases its file some time after its own unmount. */
function unmount(where: string): void {
  for (let tries = 1; ; tries += 1) {
    const complaint = run(["umount", where]);
    if (complaint === null) return;
    if (tries === UNMOUNT_TRIES_MAX) throw new Error(`umount ${where}: ${complaint}`);
    Bun.sleepSync(UNMOUNT_RETRY_MS);
  }
}

function mounts(): string[][] {
  const lines = readFileSync("/proc/mounts", "utf8").trim().split("\n");
  return lines.map((line) => line.split(" "));
}

function isMounted(where: string): boolean {
  return mounts().some(([, path]) => path === where);
}

function deviceOf(where: string): string {
  const device = mounts().find(([, path]) => path === where)?.[0];
  if (device === undefined) throw new Error(`${where} is not mounted`);
  return device;
}

/** Finished writes and flushes, and requests in flight (Documentation/block/stat.rst). */
function writesOf(device: string): string {
  const stat = readFileSync(device.replace("/dev/", "/sys/block/") + "/stat", "utf8");
  const fields = stat.trim().split(/\s+/);
  return [fields[4], fields[8], fields[15]].join("/");
}

/** The state of each thread; none once the process is reaped. */
function threadStates(pid: number): string[] {
  const tasks = `/proc/${pid}/task`;
  if (!existsSync(tasks)) return [];
  return readdirSync(tasks).flatMap((thread) => {
    try {
      const stat = readFileSync(join(tasks, thread, "stat"), "utf8");
      // The state follows the name, which ends at the last bracket.
      return [stat.slice(stat.lastIndexOf(")") + 2).charAt(0)];
    } catch {
      return [];
    }
  });
}

/** A killed process holds its files until its last thread has ended. */
async function untilGone(pid: number): Promise<void> {
  while (!threadStates(pid).every((state) => state === "Z" || state === "X")) await Bun.sleep(1);
}

/** Returns null, or the error output. */
function run(command: readonly string[]): string | null {
  const { exitCode, stderr } = Bun.spawnSync([...command]);
  return exitCode === 0 ? null : stderr.toString();
}

function must(command: readonly string[]): void {
  const complaint = run(command);
  if (complaint !== null) throw new Error(`${command.join(" ")}: ${complaint}`);
}

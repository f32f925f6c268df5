/** File systems of our own, from an image file on a loop device; and a disk that can lose its power. */
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { onCleanup, temporaryFolder } from "../_setup.ts";

const MIB = 1024 * 1024;

/** Longer than any test: nothing is written back because it has been waiting for long. */
const NEVER_S = 3_600;

const UNMOUNT_TRIES_MAX = 200;
const UNMOUNT_RETRY_MS = 50;

/** Whether this process may mount: only root may, and not in every container. */
export function canMount(): boolean {
  const folder = temporaryFolder();
  const image = makeImage(join(folder, "try.img"), 8);
  const where = join(folder, "mnt");
  mkdirSync(where);
  if (run(["mount", "-o", "loop", image, where]) !== null) return false;
  unmount(where);
  return true;
}

/** An ext4 file system of so many MiB, unmounted after the test. Returns where it is mounted. */
export function mountDisk(sizeMib: number): string {
  const folder = temporaryFolder();
  return mount(makeImage(join(folder, "disk.img"), sizeMib), join(folder, "mnt"), []);
}

/** A file system in memory, unmounted after the test. Returns where it is mounted. */
export function mountMemory(sizeMib: number): string {
  const where = join(temporaryFolder(), "mnt");
  mkdirSync(where);
  must(["mount", "-t", "tmpfs", "-o", `size=${sizeMib}m`, "tmpfs", where]);
  unmountLater(where);
  return where;
}

/**
 * A disk with a volatile write cache, and a file system on it that writes nothing back unless it is
 * told to. Three layers, each a loop device on a file in the layer below:
 *
 * 1. `platter.img`, a file of this machine: what survives a power cut.
 * 2. An ext4 on it that holds one file, `disk.img`. A write to the disk ends in the page cache of this
 *    file system, and a FLUSH of the disk is an fsync of that file (drivers/block/loop.c): its page
 *    cache is the disk's volatile write cache. It has no barriers of its own: the platter needs none.
 * 3. An ext4 on `disk.img`, which holds the data folder. Its page cache is the machine's memory.
 *
 * A copy of `platter.img` at one instant thus has what was written, then flushed out of the disk's
 * cache, before that instant, and nothing else: neither what no fsync was asked for, nor what an fsync
 * wrote without flushing. (The kernel may write more back by itself, but not before it is 30 s old.)
 */
export class FragileDisk {
  readonly #barriers: boolean;
  #folder = "";
  #root = "";

  /** `barriers: false`: the file system does not flush the disk's cache, and so must lose something. */
  constructor(sizeMib: number, { barriers = true } = {}) {
    this.#barriers = barriers;
    const folder = temporaryFolder();
    const platter = makeImage(join(folder, "platter.img"), sizeMib + sizeMib / 4);
    const cache = mount(platter, join(folder, "cache"), []);
    makeImage(join(cache, "disk.img"), sizeMib);
    unmount(cache);
    this.#start(folder);
  }

  /** Where the file system is mounted. Another one after each power cut. */
  get root(): string {
    return this.#root;
  }

  /** Puts what is there so far on the platter, for a control to have something to begin with. */
  settle(): void {
    for (const where of [this.#root, join(this.#folder, "cache")]) must(["sync", "-f", where]);
  }

  /**
   * Stops a process, and lets every system call of its under way come to its end: so it acknowledges
   * nothing that is not on one side of the cut. To be followed by `cutPower`.
   */
  async freeze(pid: number): Promise<void> {
    process.kill(pid, "SIGSTOP");
    while (!threadStates(pid).every((state) => state === "T")) await Bun.sleep(1);
  }

  /**
   * Cuts the power of a frozen process and of this disk, and mounts what is left. That nothing was
   * written while the copy was made, by the kernel for one, is seen from the devices' counters.
   */
  async cutPower(pid: number): Promise<void> {
    const left = temporaryFolder();
    const devices = [deviceOf(this.#root), deviceOf(join(this.#folder, "cache"))];
    const written = () => devices.map((device) => writesOf(device)).join();
    let before;
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

  /** Both journals are replayed here, where there is something to replay. */
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

/** Without the work that ext4 leaves for later, which would write at moments of its own. */
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

/** A loop device lets go of its file a little after it has been unmounted itself. */
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

/** Writes and flushes that a device has finished, and requests that it has in hand (Documentation/block/stat.rst). */
function writesOf(device: string): string {
  const stat = readFileSync(device.replace("/dev/", "/sys/block/") + "/stat", "utf8");
  const fields = stat.trim().split(/\s+/);
  return [fields[4], fields[8], fields[15]].join("/");
}

/** Of the threads that there are: none once the process has been waited for. */
function threadStates(pid: number): string[] {
  const tasks = `/proc/${pid}/task`;
  if (!existsSync(tasks)) return [];
  return readdirSync(tasks).flatMap((thread) => {
    try {
      const stat = readFileSync(join(tasks, thread, "stat"), "utf8");
      // The second field is a name, which may have anything in it but is closed by the last bracket.
      return [stat.slice(stat.lastIndexOf(")") + 2).charAt(0)];
    } catch {
      return [];
    }
  });
}

/** A process that was killed holds its files until every thread of it has ended. */
async function untilGone(pid: number): Promise<void> {
  while (!threadStates(pid).every((state) => state === "Z" || state === "X")) await Bun.sleep(1);
}

/** Null, or what the program complained of. */
function run(command: readonly string[]): string | null {
  const { exitCode, stderr } = Bun.spawnSync([...command]);
  return exitCode === 0 ? null : stderr.toString();
}

function must(command: readonly string[]): void {
  const complaint = run(command);
  if (complaint !== null) throw new Error(`${command.join(" ")}: ${complaint}`);
}

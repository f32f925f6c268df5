/** A Debian system of its own, booted with systemd in a container. Its only network is a loopback of its own. */
import {
  copyFileSync,
  existsSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { onCleanup, temporaryFolder } from "../../kit/setup.ts";

const STOP_TIMEOUT_MS = 20_000;

/** Every server has these: nothing that Signalbox needs beside what its package names. */
const PACKAGES = "apt,ca-certificates,curl,dbus,passwd,python3,sudo,systemd";

/** Installed once for all systems of a file. */
const original = { folder: "", root: null as Promise<string> | null };

export interface BootOptions {
  /** Another system, which is booted: both have one loopback, and see each other's servers there. */
  readonly network?: DebianSystem;
  /** A folder of this machine that is `/mnt/elsewhere` there. */
  readonly elsewhere?: string;
}

/** As at a login of root. */
const asRoot = ["env", "-i", "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"];

export class DebianSystem {
  readonly root: string;
  #pid: number | null = null;

  private constructor(root: string) {
    this.root = root;
  }

  static async install(): Promise<DebianSystem> {
    const root = join(temporaryFolder(), "root");
    await must(["cp", "--archive", "--reflink=auto", await installOriginal(), root]);
    return new DebianSystem(root);
  }

  /** Resolves when all services have started. */
  async boot({ network, elsewhere }: BootOptions = {}): Promise<void> {
    const options = "--quiet --boot --register=no --keep-unit --console=pipe";
    const net = network && `--network-namespace-path=/proc/${network.#pid}/ns/net`;
    const bind = elsewhere && `--bind=${elsewhere}:/mnt/elsewhere`;
    const where = [`--directory=${this.root}`, net ?? "--private-network", ...(bind ? [bind] : [])];
    const nspawn = Bun.spawn(["systemd-nspawn", ...options.split(" "), ...where], {
      stdio: ["ignore", "ignore", "pipe"],
    });
    onCleanup(async () => {
      nspawn.kill("SIGTERM");
      const killing = setTimeout(() => nspawn.kill("SIGKILL"), STOP_TIMEOUT_MS);
      await nspawn.exited;
      clearTimeout(killing);
    });
    while (this.#pid === null || !(await this.#isRunning())) {
      if (nspawn.exitCode !== null) throw new Error(await new Response(nspawn.stderr).text());
      await Bun.sleep(50);
      this.#pid = firstChildOf(nspawn.pid);
    }
  }

  async #isRunning(): Promise<boolean> {
    try {
      return (await this.run("systemctl is-system-running --wait 2>&1 || true")) === "running";
    } catch (error) {
      if (existsSync(`/proc/${this.#pid}`)) throw error;
      // The first child of systemd-nspawn prepares the container, and ends.
      return false;
    }
  }

  /** Runs a command in the network of the machine, with the programs of this one. */
  get network(): readonly string[] {
    return ["nsenter", `--target=${this.#pid}`, "--net", "--"];
  }

  /**
   * Runs a script as root, in a booted machine or before its first boot. Returns its stdout, trimmed; throws if it
   * fails.
   */
  async run(script: string): Promise<string> {
    return must(this.#command(script));
  }

  /** Starts a script as root. */
  spawn(script: string) {
    return Bun.spawn(this.#command(script), { stdio: ["ignore", "pipe", "inherit"] });
  }

  #command(script: string): string[] {
    const enter =
      this.#pid === null ? ["chroot", this.root] : ["nsenter", `--target=${this.#pid}`, "--all"];
    return [...enter, ...asRoot, "sh", "-e", "-c", script];
  }

  /** Ends it at once, as a power cut does. */
  lose(): void {
    if (this.#pid !== null) process.kill(this.#pid, "SIGKILL");
  }

  /** Copies a file into the folder /root. */
  give(file: string): string {
    copyFileSync(file, join(this.root, "root", basename(file)));
    return `/root/${basename(file)}`;
  }
}

/** Installs what every Debian has, and the packages above, from this machine's sources. */
export function installOriginal(): Promise<string> {
  original.root ??= debootstrap();
  return original.root;
}

/** After the last test of a file. */
export function removeOriginal(): void {
  rmSync(original.folder, { recursive: true, force: true });
}

async function debootstrap(): Promise<string> {
  const folder = mkdtempSync(join(tmpdir(), "signalbox-debian-"));
  original.folder = folder;
  const root = join(folder, "root");
  const [, suite = ""] =
    /^VERSION_CODENAME=(\S+)$/m.exec(readFileSync("/etc/os-release", "utf8")) ?? [];
  const sources = new Bun.Glob("/etc/apt/{sources.list,sources.list.d/*.{list,sources}}");
  // How the packages are reached, such as a proxy.
  const access = join(folder, "apt.conf");
  writeFileSync(access, await must(["apt-config", "dump", "Acquire"]));
  await must([
    "mmdebstrap",
    "--quiet",
    "--variant=essential",
    `--include=${PACKAGES}`,
    "--dpkgopt=force-unsafe-io",
    `--aptopt=${access}`,
    suite,
    root,
    ...sources.scanSync("/"),
  ]);
  return root;
}

function firstChildOf(pid: number): number | null {
  const children = readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8");
  return Number.parseInt(children, 10) || null;
}

/** Runs a program and returns its stdout, trimmed. Throws if it fails. */
export async function must(
  command: readonly string[],
  options: { readonly cwd?: string; readonly env?: Record<string, string> } = {},
): Promise<string> {
  const { cwd = ".", env = {} } = options;
  const child = Bun.spawn([...command], {
    cwd,
    env: { ...process.env, ...env },
    stdout: "pipe",
    stderr: "pipe",
  });
  const [code, stdout, stderr] = await Promise.all([
    child.exited,
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
  ]);
  if (code !== 0) throw new Error(`${command.join(" ")} ended with ${code}:\n${stdout}${stderr}`);
  return stdout.trim();
}

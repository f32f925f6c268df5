/** Machines made of network namespaces on one bridge. */
import { onCleanup } from "../../kit/setup.ts";

/** One of the networks for measurements (RFC 2544), so that two runs at once do not meet. */
const NET = `198.18.${1 + Math.floor(Math.random() * 254)}`;

export interface Host {
  readonly name: string;
  readonly address: string;
  /** Starts a program on it, in a process group of its own. It ends with the test. */
  readonly start: (command: readonly string[], env?: Record<string, string>) => Process;
  readonly run: (command: readonly string[]) => { code: number; stdout: string; stderr: string };
  /** From now on no packet passes between it and the others, or all hosts if none is named. */
  readonly cut: (others?: readonly Host[]) => void;
  readonly heal: () => void;
}

export interface Process {
  readonly pid: number;
  /** The last of stdout and stderr. */
  readonly output: () => string;
  readonly kill: (signal: NodeJS.Signals) => void;
  readonly hasEnded: () => boolean;
  readonly exited: Promise<number>;
}

function ip(...words: readonly string[]): void {
  const { exitCode, stderr } = Bun.spawnSync(["ip", ...words]);
  if (exitCode !== 0) throw new Error(`ip ${words.join(" ")}: ${stderr.toString()}`);
}

/** `prefix`: up to eight letters, so that names fit into those of interfaces. Hosts get addresses from .11 on. */
export function createNetwork(prefix: string): { gateway: string; host: (name: string) => Host } {
  const bridge = `${prefix}br`;
  ip("link", "add", bridge, "type", "bridge");
  onCleanup(() => ip("link", "del", bridge));
  ip("addr", "add", `${NET}.1/24`, "dev", bridge);
  ip("link", "set", bridge, "up");
  let last = 10;
  return {
    gateway: `${NET}.1`,
    host(name) {
      const [space, outer] = [`${prefix}${name}`, `${prefix}${name}o`];
      const address = `${NET}.${(last += 1)}`;
      ip("netns", "add", space);
      onCleanup(() => {
        // Some programs, such as PostgreSQL, have left the groups that they were started in.
        Bun.spawnSync(["sh", "-c", `ip netns pids ${space} | xargs -r kill -9`]);
        // Otherwise the kernel removes it some time after the name of the namespace.
        ip("link", "del", outer);
        ip("netns", "del", space);
      });
      ip("link", "add", outer, "type", "veth", "peer", "name", "eth0", "netns", space);
      ip("link", "set", outer, "master", bridge, "up");
      const inside = ["netns", "exec", space] as const;
      ip(...inside, "ip", "addr", "add", `${address}/24`, "dev", "eth0");
      for (const device of ["lo", "eth0"]) ip(...inside, "ip", "link", "set", device, "up");
      return hostIn(name, space, address);
    },
  };
}

function hostIn(name: string, space: string, address: string): Host {
  const inside = ["ip", "netns", "exec", space];
  let routes: string[] = [];
  const route = (verb: string, other: string): void => {
    Bun.spawnSync([...inside, "ip", "route", verb, "blackhole", other]);
  };
  return {
    name,
    address,
    start: (command, env) => startIn([...inside, ...command], env),
    run(command) {
      const { exitCode, stdout, stderr } = Bun.spawnSync([...inside, ...command]);
      return { code: exitCode, stdout: stdout.toString(), stderr: stderr.toString() };
    },
    cut(others) {
      routes = others?.map((other) => `${other.address}/32`) ?? [`${NET}.0/25`, `${NET}.128/25`];
      for (const one of routes) route("add", one);
    },
    heal() {
      for (const one of routes.splice(0)) route("del", one);
    },
  };
}

function startIn(command: readonly string[], env: Record<string, string> = {}): Process {
  const child = Bun.spawn([...command], {
    env: { PATH: `${process.env["PATH"]}:/usr/sbin:/sbin`, HOME: "/", ...env },
    stdin: "ignore",
    stdout: "pipe",
    stderr: "pipe",
    detached: true,
  });
  let output = "";
  for (const stream of [child.stdout, child.stderr]) {
    void (async () => {
      const decoder = new TextDecoder();
      for await (const chunk of stream) {
        output = (output + decoder.decode(chunk, { stream: true })).slice(-100_000);
      }
    })();
  }
  const hasEnded = (): boolean => child.exitCode !== null || child.signalCode !== null;
  const kill = (signal: NodeJS.Signals): void => {
    if (!hasEnded()) process.kill(-child.pid, signal);
  };
  onCleanup(async () => {
    kill("SIGKILL");
    await child.exited;
  });
  return { pid: child.pid, output: () => output, kill, hasEnded, exited: child.exited };
}

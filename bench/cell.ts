/** One cell: one server under one load, with a new empty database or one that has signals in it. */
import { mkdirSync, rmSync } from "node:fs";
import { randomInt } from "node:crypto";
import { join } from "node:path";
import { count, databaseBytes, requireAllStored } from "./counts.ts";
import { isStored, type Load, type LoadResult, runLoad, type Target } from "./load.ts";
import { readCpuUs, readMachineCpuUs, readMemoryMib, readThreadCpuUs } from "./proc.ts";
import { answersHttp, freePort, startServer } from "./process.ts";
import { send, storeDuplicates } from "./requests.ts";
import { expectedStatus, keyOf, prepare, type ServerName } from "./servers.ts";
import { settle } from "./settle.ts";
import type { Stored } from "./stored.ts";
import type { Tools } from "./tools.ts";

/** Before the measurement, so that the compilers of the runtimes have done their work. */
const WARM_UP_SECONDS = 1;
/** Few, because what they leave behind unanswered is the first thing that the measured run waits for. */
const WARM_UP_CONNECTIONS_MAX = 16;
const SEEDS = 2 ** 32;
/** Threads that took less are of no interest. */
const THREAD_CPU_US_MIN = 0.1;

export interface Cell {
  readonly server: ServerName;
  readonly load: Load;
  readonly seconds: number;
  /** None, where it only matters whether it works. */
  readonly hasWarmUp: boolean;
  /** Extra time of every fsync, where signals are stored. */
  readonly fsyncMs: number;
  /** None: a new database. */
  readonly stored: Stored | null;
  /** Whether the load waits until the server has done what a start leaves to do. */
  readonly settles: boolean;
}

export interface Figures {
  readonly server: ServerName;
  readonly load: Load;
  readonly fsync_ms: number;
  /** Signals that the database had before. */
  readonly stored_before: number;
  readonly throughput_per_s: number;
  readonly latency_ms_p50: number;
  readonly latency_ms_p99: number;
  readonly latency_ms_p999: number;
  readonly latency_ms_max: number;
  /** From starting the process to having read the first signal's 201. */
  readonly start_ms: number;
  /** From then until it had nothing more to do; null where the load did not wait for that. */
  readonly settle_ms: number | null;
  /** The server's, all threads. */
  readonly cpu_us_per_signal: number;
  /** The same by thread, most first. */
  readonly threads: readonly { readonly name: string; readonly cpu_us_per_signal: number }[];
  readonly memory_mib_peak: number;
  /** In the middle of the load, and at its end. */
  readonly memory_mib_halfway: number;
  readonly memory_mib_end: number;
  /** Signals that were answered as stored, warm-up included. */
  readonly acknowledged: number;
  /** Rows that came to the database; null where nothing is stored. */
  readonly stored: number | null;
  /** On disk, of each stored signal, after the server has ended; null where nothing is stored. */
  readonly disk_bytes_per_signal: number | null;
  /** Of the core that the load generator could fill; near 1, it is what was measured. */
  readonly client_cpu_share: number;
  /** Cores that were busy with neither the server nor the load generator: the noise. */
  readonly other_cpu_cores: number;
}

/** What may be done to a server while it is under load; to be awaited before it is stopped. */
export type Observer = (pid: number, seconds: number) => Promise<void>;

export async function measureCell(
  tools: Tools,
  cell: Cell,
  folder: string,
  observe: Observer = async () => {},
): Promise<Figures> {
  const { server, load, seconds, stored: given } = cell;
  const dataDir = given?.dataDir ?? join(folder, "data");
  if (given === null) mkdirSync(dataDir, { mode: 0o700 });
  try {
    const port = freePort();
    const prepared = await prepare[server](tools, { dataDir, port, key: given?.key ?? null });
    const { databaseFile } = prepared;
    const before = given === null || databaseFile === null ? 0 : count(databaseFile);
    const startedAt = performance.now();
    const running = await startServer(prepared.command, {
      isReady: answersHttp(port),
      env: prepared.env,
      logFile: join(folder, `${server}.log`),
      wrapper: databaseFile === null ? [] : slowFsync(tools, cell.fsyncMs),
    });
    const target = { port, key: keyOf(load.kind, prepared.key), seed: randomInt(SEEDS) };
    await send({ ...target, key: prepared.key }, "random", 201);
    const start_ms = performance.now() - startedAt;
    const settle_ms = cell.settles ? await settle(running.pid) : null;
    const extra = 1 + (await readyLoad(target, server, load));

    const warmUpConnections = Math.min(load.connections, WARM_UP_CONNECTIONS_MAX);
    const warmUpLoad = { connections: warmUpConnections, kind: load.kind };
    const warmUp = cell.hasWarmUp
      ? await runLoad(tools.wrk, target, warmUpLoad, WARM_UP_SECONDS)
      : null;
    const from = readUsage(running.pid);
    // Another seed, so that no id is ever sent twice, unless that is the load.
    const seed = load.kind === "duplicates" ? target.seed : (target.seed + 1) % SEEDS;
    const [result, memory_mib_halfway] = await Promise.all([
      runLoad(tools.wrk, { ...target, seed }, load, seconds),
      Bun.sleep(seconds * 500).then(() => readMemoryMib(running.pid, "now")),
      observe(running.pid, seconds),
    ]);
    const to = readUsage(running.pid);
    const memory_mib_end = readMemoryMib(running.pid, "now");
    const memory_mib_peak = readMemoryMib(running.pid, "peak");
    await running.stop();

    if (warmUp !== null) requireStatus(cell, warmUp);
    requireStatus(cell, result);
    const answers = (warmUp?.requests ?? 0) + result.requests;
    const acknowledged = extra + (isStored(load.kind) ? answers : 0);
    const total = databaseFile === null ? null : count(databaseFile);
    const stored = total === null ? null : total - before;
    const underWay = isStored(load.kind) ? load.connections + warmUpConnections : 0;
    requireAllStored(server, { acknowledged, stored, underWay });
    const cpu_us = to.server_us - from.server_us;
    const other_us = to.machine_us - from.machine_us - cpu_us - result.cpu_us;
    return {
      server,
      load,
      fsync_ms: cell.fsyncMs,
      stored_before: before,
      ...latencies(result),
      throughput_per_s: (result.requests / result.duration_us) * 1e6,
      start_ms,
      settle_ms,
      cpu_us_per_signal: cpu_us / result.requests,
      threads: threadsBetween(from, to, result.requests),
      memory_mib_peak,
      memory_mib_halfway,
      memory_mib_end,
      acknowledged,
      stored,
      disk_bytes_per_signal:
        databaseFile === null || total === null ? null : databaseBytes(databaseFile) / total,
      client_cpu_share: result.cpu_us / result.duration_us,
      other_cpu_cores: Math.max(0, other_us) / result.duration_us,
    };
  } finally {
    if (given === null) rmSync(dataDir, { recursive: true, force: true });
  }
}

/** Sees that the load's requests are answered as they should be. Returns how many signals that stored. */
async function readyLoad(target: Target, server: ServerName, { kind }: Load): Promise<number> {
  const stored = kind === "duplicates" ? await storeDuplicates(target) : 0;
  await send(target, kind, expectedStatus(server, kind));
  return stored + (isStored(kind) ? 1 : 0);
}

function requireStatus({ server, load }: Cell, { requests, refused }: LoadResult): void {
  if (requests === 0) throw new Error("no request was answered");
  const expected = expectedStatus(server, load.kind) < 400 ? 0 : requests;
  if (refused === expected) return;
  throw new Error(`${server} refused ${refused} of ${requests} requests, and not ${expected}`);
}

function readUsage(pid: number) {
  return {
    server_us: readCpuUs(pid),
    machine_us: readMachineCpuUs(),
    threads: readThreadCpuUs(pid),
  };
}

type Usage = ReturnType<typeof readUsage>;

function threadsBetween(from: Usage, to: Usage, requests: number): Figures["threads"] {
  return [...to.threads]
    .map(([id, { name, cpu_us }]) => ({
      name,
      cpu_us_per_signal: (cpu_us - (from.threads.get(id)?.cpu_us ?? 0)) / requests,
    }))
    .filter(({ cpu_us_per_signal }) => cpu_us_per_signal >= THREAD_CPU_US_MIN)
    .toSorted((a, b) => b.cpu_us_per_signal - a.cpu_us_per_signal);
}

function latencies(result: LoadResult) {
  return {
    latency_ms_p50: result.latency_us_p50 / 1e3,
    latency_ms_p99: result.latency_us_p99 / 1e3,
    latency_ms_p999: result.latency_us_p999 / 1e3,
    latency_ms_max: result.latency_us_max / 1e3,
  };
}

/**
 * strace holds each of these system calls up; with --seccomp-bpf it leaves the others alone. For every
 * server that stores, or the comparison would be of disks.
 */
function slowFsync(tools: Tools, fsyncMs: number): string[] {
  if (fsyncMs === 0) return [];
  if (tools.strace === null) throw new Error("unreachable: no strace to slow the disk down with");
  const calls = "fsync,fdatasync";
  const trace = ["-e", `trace=${calls}`, "-e", `inject=${calls}:delay_enter=${fsyncMs * 1_000}`];
  return [tools.strace, "-f", "-qq", "--seccomp-bpf", ...trace, "-o", "/dev/null"];
}

/** One cell of the table: one server with a new empty database under one load. */
import { Database } from "bun:sqlite";
import { mkdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { type Load, type LoadResult, runLoad, WRK_THREADS } from "./load.ts";
import { readCpuUs, readMachineCpuUs, readMemoryMibPeak } from "./proc.ts";
import { startServer } from "./process.ts";
import { prepare, type ServerName } from "./servers.ts";
import type { Tools } from "./tools.ts";

/** Before the measurement, so that the compilers of the runtimes have done their work. */
const WARM_UP_SECONDS = 1;
/** Few, because what they leave behind unanswered is the first thing that the measured run waits for. */
const WARM_UP_CONNECTIONS_MAX = 16;

export interface Figures {
  readonly server: ServerName;
  readonly load: Load;
  readonly throughput_per_s: number;
  readonly latency_ms_p50: number;
  readonly latency_ms_p99: number;
  readonly latency_ms_p999: number;
  readonly latency_ms_max: number;
  /** The server's, all threads. */
  readonly cpu_us_per_signal: number;
  readonly memory_mib_peak: number;
  /** Answered 201, warm-up included. */
  readonly acknowledged: number;
  /** Rows in the database after the server has ended; null where nothing is stored. */
  readonly stored: number | null;
  /** Of the cores that wrk's threads could fill; near 1, wrk is what was measured. */
  readonly wrk_cpu_share: number;
  /** Cores that were busy with neither the server nor wrk: the noise. */
  readonly other_cpu_cores: number;
}

export async function measureCell(
  tools: Tools,
  cell: { server: ServerName; load: Load; seconds: number; fsyncMs: number },
  folder: string,
): Promise<Figures> {
  const { server, load, seconds } = cell;
  const dataDir = join(folder, "data");
  mkdirSync(dataDir);
  try {
    const port = freePort();
    const prepared = await prepare[server](tools, dataDir, port);
    const running = await startServer(prepared.command, {
      port,
      env: prepared.env,
      logFile: join(folder, `${server}.log`),
      wrapper: prepared.databaseFile === null ? [] : slowFsync(tools, cell.fsyncMs),
    });
    const target = { port, key: prepared.key };
    const warmUpConnections = Math.min(load.connections, WARM_UP_CONNECTIONS_MAX);
    const warmUpLoad = { ...load, connections: warmUpConnections };
    const warmUp = await runLoad(tools.wrk, target, warmUpLoad, WARM_UP_SECONDS);
    const cpuBefore = { server: readCpuUs(running.pid), machine: readMachineCpuUs() };
    const result = await runLoad(tools.wrk, target, load, seconds);
    const cpu_us = readCpuUs(running.pid) - cpuBefore.server;
    const machine_cpu_us = readMachineCpuUs() - cpuBefore.machine;
    const memory_mib_peak = readMemoryMibPeak(running.pid);
    await running.stop();

    const acknowledged = warmUp.requests + result.requests;
    const stored = prepared.databaseFile === null ? null : countSignals(prepared.databaseFile);
    requireAllStored(server, acknowledged, stored, load.connections + warmUpConnections);
    return {
      server,
      load,
      ...latencies(result),
      throughput_per_s: (result.requests / result.duration_us) * 1e6,
      cpu_us_per_signal: cpu_us / result.requests,
      memory_mib_peak,
      acknowledged,
      stored,
      wrk_cpu_share: result.cpu_us / result.duration_us / WRK_THREADS,
      other_cpu_cores: Math.max(0, machine_cpu_us - cpu_us - result.cpu_us) / result.duration_us,
    };
  } finally {
    rmSync(dataDir, { recursive: true, force: true });
  }
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
  if (tools.strace === null || fsyncMs === 0) return [];
  const calls = "fsync,fdatasync";
  const trace = ["-e", `trace=${calls}`, "-e", `inject=${calls}:delay_enter=${fsyncMs * 1_000}`];
  return [tools.strace, "-f", "-qq", "--seccomp-bpf", ...trace, "-o", "/dev/null"];
}

function countSignals(file: string): number {
  const db = new Database(file, { readonly: true });
  try {
    const row = db.query<{ count: number }, []>("SELECT count(*) AS count FROM signals").get();
    return row?.count ?? 0;
  } finally {
    db.close();
  }
}

/** wrk ends with up to one request a connection on its way: stored perhaps, but not acknowledged. */
function requireAllStored(
  server: ServerName,
  acknowledged: number,
  stored: number | null,
  connections: number,
): void {
  if (stored === null) return;
  if (stored >= acknowledged && stored <= acknowledged + connections) return;
  throw new Error(
    `${server} acknowledged ${acknowledged} signals and stored ${stored}; at most ${connections} were on their way`,
  );
}

/** Free a moment ago; Signalbox is not asked for port 0, because then only its log would tell the port. */
function freePort(): number {
  const listener = Bun.listen({ hostname: "127.0.0.1", port: 0, socket: { data() {} } });
  listener.stop(true);
  return listener.port;
}

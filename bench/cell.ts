/** One cell: one server under one load, on a new database or on one with stored signals. */
import { randomInt } from "node:crypto";
import { mkdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { count, databaseBytes, requireAllStored } from "./counts.ts";
import type { Figures } from "./figures.ts";
import { idKindOf, isStored, type Load, type LoadResult, type Target } from "./load.ts";
import { answersHttp, freePort, type RunningServer, startServer } from "./process.ts";
import { send, storeDuplicates } from "./requests.ts";
import { runLoad } from "./run-load.ts";
import { expectedStatus, keyOf, type Prepared, prepare, type ServerName } from "./servers.ts";
import type { Stored } from "./stored.ts";
import type { Tools } from "./tools.ts";
import { watchUsage } from "./usage.ts";

/** After this the runtimes have compiled most of their code: see `docs/performance.md`. */
export const WARM_UP_SECONDS = 5;
/** Few, because the measured run first waits for the requests that the warm-up leaves unanswered. */
const WARM_UP_CONNECTIONS_MAX = 16;
const SEEDS = 2 ** 32;

export interface Cell {
  readonly server: ServerName;
  readonly load: Load;
  readonly seconds: number;
  /** False for a quick look, where only correctness matters. */
  readonly hasWarmUp: boolean;
  /** Extra time of every fsync, for servers that store signals. */
  readonly fsyncMs: number;
  /** The database to use; null for a new one. */
  readonly stored: Stored | null;
}

/** Runs beside the load; the server is stopped after it has resolved. */
export type Observer = (pid: number, seconds: number) => Promise<void>;

export async function measureCell(
  tools: Tools,
  cell: Cell,
  folder: string,
  observe: Observer = async () => {},
): Promise<Figures> {
  const { server, load, stored: given } = cell;
  const dataDir = given?.dataDir ?? join(folder, "data");
  if (given === null) mkdirSync(dataDir, { mode: 0o700 });
  try {
    const port = freePort();
    const prepared = await prepare[server](tools, { dataDir, port, key: given?.key ?? null });
    const { databaseFile } = prepared;
    const stored_before = given === null || databaseFile === null ? 0 : count(databaseFile);
    const { running, start_ms } = await start(tools, cell, prepared, { port, folder });
    const target = { port, key: keyOf(load.kind, prepared.key), seed: randomInt(SEEDS) };
    const { acknowledged, ...loaded } = await underLoad(tools, cell, target, running.pid, observe);
    await running.stop();
    return {
      server,
      load,
      fsync_ms: cell.fsyncMs,
      stored_before,
      start_ms,
      ...loaded,
      acknowledged,
      ...inspect(cell, databaseFile, { stored_before, acknowledged }),
    };
  } finally {
    if (given === null) rmSync(dataDir, { recursive: true, force: true });
  }
}

/** Starts the server and stores one signal. */
async function start(
  tools: Tools,
  { server, load, fsyncMs }: Cell,
  { command, env, databaseFile, key }: Prepared,
  { port, folder }: { port: number; folder: string },
): Promise<{ running: RunningServer; start_ms: number }> {
  const startedAt = performance.now();
  const running = await startServer(command, {
    isReady: answersHttp(port),
    env,
    logFile: join(folder, `${server}.log`),
    wrapper: databaseFile === null ? [] : slowFsync(tools, fsyncMs),
  });
  await send({ port, key, seed: 0 }, idKindOf(load.kind), 201);
  return { running, start_ms: performance.now() - startedAt };
}

async function underLoad(
  { wrk }: Tools,
  cell: Cell,
  target: Target,
  pid: number,
  observe: Observer,
) {
  const { load, seconds } = cell;
  const ready = await readyLoad(target, cell);
  const warmUp = cell.hasWarmUp
    ? await runLoad(wrk, target, warmUpOf(load), WARM_UP_SECONDS)
    : null;
  // Another seed, so that no id is ever sent twice, unless that is the load.
  const seed = load.kind === "duplicates" ? target.seed : (target.seed + 1) % SEEDS;
  const measured = (): Promise<LoadResult> => runLoad(wrk, { ...target, seed }, load, seconds);
  const [[result, usage]] = await Promise.all([watchUsage(pid, measured), observe(pid, seconds)]);
  if (warmUp !== null) requireStatus(cell, warmUp);
  requireStatus(cell, result);
  const answers = (warmUp?.requests ?? 0) + result.requests;
  return {
    ...latencies(result),
    throughput_per_s: (result.requests / result.duration_us) * 1e6,
    ...usage,
    // 1 for the signal that was stored at the start.
    acknowledged: 1 + ready + (isStored(load.kind) ? answers : 0),
  };
}

/** A closed loop of few connections. */
function warmUpOf({ connections, kind }: Load): Load {
  return { connections: Math.min(connections, WARM_UP_CONNECTIONS_MAX), kind };
}

/** Checks how one of the load's requests is answered. Returns the number of signals that were stored for that. */
async function readyLoad(target: Target, { server, load: { kind } }: Cell): Promise<number> {
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

/** Counts the signals after the server has ended. Throws if an acknowledged one is missing. */
function inspect(
  { server, load, hasWarmUp }: Cell,
  databaseFile: string | null,
  { stored_before, acknowledged }: { stored_before: number; acknowledged: number },
): Pick<Figures, "stored" | "disk_bytes_per_signal"> {
  if (databaseFile === null) return { stored: null, disk_bytes_per_signal: null };
  const total = count(databaseFile);
  const stored = total - stored_before;
  const connections = load.connections + (hasWarmUp ? warmUpOf(load).connections : 0);
  const underWay = isStored(load.kind) ? connections : 0;
  requireAllStored(server, { acknowledged, stored, underWay });
  return { stored, disk_bytes_per_signal: databaseBytes(databaseFile) / total };
}

function latencies(result: LoadResult) {
  return {
    latency_ms_p50: result.latency_us_p50 / 1e3,
    latency_ms_p99: result.latency_us_p99 / 1e3,
    latency_ms_p999: result.latency_us_p999 / 1e3,
    latency_ms_max: result.latency_us_max / 1e3,
  };
}

/** Delays each fsync with strace; --seccomp-bpf keeps the other system calls fast. */
function slowFsync(tools: Tools, fsyncMs: number): string[] {
  if (fsyncMs === 0) return [];
  if (tools.strace === null) throw new Error("unreachable: no strace to slow the disk down with");
  const calls = "fsync,fdatasync";
  const trace = ["-e", `trace=${calls}`, "-e", `inject=${calls}:delay_enter=${fsyncMs * 1_000}`];
  return [tools.strace, "-f", "-qq", "--seccomp-bpf", ...trace, "-o", "/dev/null"];
}

/** One cell: one server under one load, on a new database or on one with stored signals. */
import { mkdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { runClosedLoop } from "./closed-loop.ts";
import { count, databaseBytes } from "./counts.ts";
import type { Figures } from "./figures.ts";
import type { Load, LoadResult, Target } from "./load.ts";
import { runOpenLoop } from "./open-loop.ts";
import { answersHttp, freePort, type RunningServer, startServer } from "./process.ts";
import { type Prepared, prepare, type ServerName } from "./servers.ts";
import { send } from "./signal.ts";
import type { Stored } from "./stored.ts";
import type { Tools } from "./tools.ts";
import { watchUsage } from "./usage.ts";

/** After this the runtimes have compiled most of their code: see `docs/performance.md`. */
export const WARM_UP_SECONDS = 5;
/** Few, because the measured run first waits for the requests that the warm-up leaves unanswered. */
const WARM_UP_CONNECTIONS_MAX = 16;

export interface Cell {
  readonly server: ServerName;
  readonly load: Load;
  readonly seconds: number;
  /** False for a quick look, where only correctness matters. */
  readonly hasWarmUp: boolean;
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
    const { databaseFile, key } = prepared;
    const stored_before = given === null || databaseFile === null ? 0 : count(databaseFile);
    const { running, start_ms } = await start(cell, prepared, { port, folder });
    const { acknowledged, ...loaded } = await underLoad(
      tools,
      cell,
      { port, key },
      running,
      observe,
    );
    await running.stop();
    return {
      server,
      load,
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
  { server, load }: Cell,
  { command, key }: Prepared,
  { port, folder }: { port: number; folder: string },
): Promise<{ running: RunningServer; start_ms: number }> {
  const startedAt = performance.now();
  const logFile = join(folder, `${server}.log`);
  const running = await startServer(command, { isReady: answersHttp(port), logFile });
  await send({ port, key }, load.ids);
  return { running, start_ms: performance.now() - startedAt };
}

async function underLoad(
  { wrk }: Tools,
  { load, seconds, hasWarmUp }: Cell,
  target: Target,
  { pid }: RunningServer,
  observe: Observer,
) {
  const warmUp = hasWarmUp
    ? await runClosedLoop(wrk, target, warmUpOf(load), WARM_UP_SECONDS)
    : null;
  const measured = (): Promise<LoadResult> =>
    load.rate_per_s === undefined
      ? runClosedLoop(wrk, target, load, seconds)
      : runOpenLoop(target, load, load.rate_per_s, seconds);
  const [[result, usage]] = await Promise.all([watchUsage(pid, measured), observe(pid, seconds)]);
  if (result.requests === 0) throw new Error("no request was answered");
  return {
    latency_ms_p50: result.latency_us_p50 / 1e3,
    latency_ms_p99: result.latency_us_p99 / 1e3,
    latency_ms_max: result.latency_us_max / 1e3,
    throughput_per_s: (result.requests / result.duration_us) * 1e6,
    ...usage,
    // 1 for the signal that was stored at the start.
    acknowledged: 1 + (warmUp?.requests ?? 0) + result.requests,
  };
}

function warmUpOf({ connections, ids }: Load): Load {
  return { connections: Math.min(connections, WARM_UP_CONNECTIONS_MAX), ids };
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
  // A load ends with up to one request per connection under way: perhaps stored, but not acknowledged.
  const underWay = load.connections + (hasWarmUp ? warmUpOf(load).connections : 0);
  if (stored < acknowledged || stored > acknowledged + underWay) {
    throw new Error(
      `${server} acknowledged ${acknowledged} signals and stored ${stored}; at most ${underWay} were under way`,
    );
  }
  return { stored, disk_bytes_per_signal: databaseBytes(databaseFile) / total };
}

/** Redis: `XADD` to one stream, each on disk before it is answered. No HTTP, no key, no deduplication. */
import { mkdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { freePort, run, startServer } from "../process.ts";
import { bodyOf, ID_PLACEHOLDER } from "../signal.ts";
import { missing } from "../tools.ts";

export const REDIS_CLIENTS = 256;

/** redis-benchmark is told a number of commands, and not a time: so many tell how many those should be. */
const TRIAL_COMMANDS = 10_000;
/** It replaces this with twelve random digits. */
const RANDOM_DIGITS = "__rand_int__";
const RANDOM_DIGITS_LENGTH = 12;
const GRACE_MS = 60_000;

interface Programs {
  readonly server: string;
  readonly benchmark: string;
  readonly cli: string;
}

type Found = { readonly missing: null; readonly programs: Programs } | { readonly missing: string };

export function findRedis(): Found & { readonly missing: string | null } {
  const [server, benchmark, cli] = ["redis-server", "redis-benchmark", "redis-cli"].map((name) =>
    Bun.which(name),
  );
  if (!server || !benchmark || !cli) return { missing: missing("Redis", "redis-server") };
  return { missing: null, programs: { server, benchmark, cli } };
}

/** Throws where the stream has not as many entries as were acknowledged. */
export async function measureRedis(
  folder: string,
  seconds: number,
): Promise<{ version: string; rate: number }> {
  const found = findRedis();
  if (found.missing !== null) throw new Error(found.missing);
  const { server, cli, benchmark } = found.programs;
  const port = freePort();
  const dataDir = join(folder, "redis");
  mkdirSync(dataDir);
  try {
    const ask = async (...command: string[]): Promise<string> =>
      (await run([cli, "-e", "-p", String(port), ...command])).stdout.trim();
    const running = await startServer(
      [server, "--port", String(port), "--bind", "127.0.0.1", "--dir", dataDir, ...durable],
      { isReady: () => ask("PING"), logFile: join(folder, "redis.log") },
    );
    const trial = await xadd(benchmark, port, TRIAL_COMMANDS, seconds);
    const commands = Math.max(TRIAL_COMMANDS, Math.round(trial * seconds));
    const rate = await xadd(benchmark, port, commands, seconds);
    const stored = Number(await ask("XLEN", "signals"));
    const version = /redis_version:(\S+)/.exec(await ask("INFO", "server"))?.[1] ?? "unknown";
    await running.stop();
    if (stored !== TRIAL_COMMANDS + commands) {
      throw new Error(`Redis stored ${stored} of ${TRIAL_COMMANDS + commands} entries`);
    }
    return { version: `Redis ${version}`, rate };
  } finally {
    rmSync(dataDir, { recursive: true, force: true });
  }
}

/** Everything else as it comes; the snapshots, which durability does not need, would only disturb. */
const durable = ["--appendonly", "yes", "--appendfsync", "always", "--save", ""];

async function xadd(
  benchmark: string,
  port: number,
  commands: number,
  seconds: number,
): Promise<number> {
  const id = RANDOM_DIGITS + ID_PLACEHOLDER.slice(RANDOM_DIGITS_LENGTH);
  const signal = bodyOf("v7").replace(ID_PLACEHOLDER, id);
  const flags = ["-p", String(port), "-c", String(REDIS_CLIENTS), "-n", String(commands), "--csv"];
  const random = ["-r", String(10 ** RANDOM_DIGITS_LENGTH)];
  const { stdout } = await run(
    [benchmark, ...flags, ...random, "XADD", "signals", "*", "signal", signal],
    // It may be much slower than the trial let expect.
    { msMax: seconds * 10_000 + GRACE_MS },
  );
  return rateOf(stdout);
}

/** The second column of the last line, in which the first is the command, quotes in it doubled or not. */
function rateOf(csv: string): number {
  const line = csv.trim().split("\n").at(-1) ?? "";
  const columns = [...line.matchAll(/"(\d+\.\d+)"/g)].map(([, number]) => Number(number));
  const [rate] = columns;
  if (rate === undefined || rate <= 0) throw new Error(`redis-benchmark gave no rate: ${csv}`);
  return rate;
}

/** The row about readers: how soon a signal reaches one, and what one that catches up costs the others. */
import { mkdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import type { FeedLoad, FeedResult } from "../feed-client.ts";
import { formatCount } from "../markdown.ts";
import { answersHttp, freePort, run, startServer } from "../process.ts";
import { runOpenLoop } from "../open-loop.ts";
import { prepare } from "../servers.ts";
import { send } from "../signal.ts";
import type { Stored } from "../stored.ts";
import { loadOf, type Place, type Round } from "./round.ts";
import type { Result, Row } from "./row.ts";

const RATE_PER_S = 1_000;
const P50_MS_MAX = 5;
/** Beside the measured time: start, warm-up and the last answers. */
const CLIENT_MS_MAX = 30_000;

export const feedRow: Row = {
  load: `${formatCount(RATE_PER_S)}/s and readers of the feed; one that catches up needs \`--stored\``,
  goal: `from 201 to the reader p50 at most ${P50_MS_MAX} ms`,
  async measure(round) {
    const live = await withServer(round.place, null, (target) => runClient(round, target, "live"));
    const results: Result[] = [
      [{ name: "201 to reader, p50", unit: "ms", atMost: P50_MS_MAX }, live.latency_ms_p50],
      [{ name: "201 to reader, p99", unit: "ms" }, live.latency_ms_p99],
      [{ name: "requests of the reader", unit: "/s" }, live.requests / round.place.options.seconds],
    ];
    const stored = round.place.stored?.v7;
    return stored === undefined ? results : [...results, ...(await catchUp(round, stored))];
  },
};

/** The latency of signals alone, and beside a reader that begins at the first signal. */
async function catchUp(round: Round, stored: Stored): Promise<Result[]> {
  const { seconds } = round.place.options;
  const load = loadOf("v7");
  return withServer(round.place, stored, async (target) => {
    await runOpenLoop(target, load, RATE_PER_S, seconds);
    const alone = await runOpenLoop(target, load, RATE_PER_S, seconds);
    const [beside, reader] = await Promise.all([
      runOpenLoop(target, load, RATE_PER_S, seconds),
      runClient(round, target, "catch-up"),
    ]);
    return [
      [{ name: "p50 without a reader", unit: "ms" }, alone.latency_us_p50 / 1e3],
      [{ name: "p50 beside one that catches up", unit: "ms" }, beside.latency_us_p50 / 1e3],
      [{ name: "p99 without a reader", unit: "ms" }, alone.latency_us_p99 / 1e3],
      [{ name: "p99 beside one that catches up", unit: "ms" }, beside.latency_us_p99 / 1e3],
      [{ name: "signals that it reads", unit: "/s" }, reader.signals / seconds],
    ];
  });
}

type Target = Pick<FeedLoad, "port" | "key" | "readPort" | "readKey">;

async function runClient(
  { place: { options } }: Round,
  target: Target,
  mode: FeedLoad["mode"],
): Promise<FeedResult> {
  const { seconds } = options;
  const load: FeedLoad = { ...target, mode, rate_per_s: RATE_PER_S, seconds };
  const client = join(import.meta.dir, "..", "feed-client.ts");
  const command = [process.execPath, client, JSON.stringify(load)];
  const { stdout } = await run(command, { msMax: seconds * 1_000 + CLIENT_MS_MAX });
  return JSON.parse(stdout) as FeedResult;
}

async function withServer<T>(
  { tools, folder }: Place,
  stored: Stored | null,
  work: (target: Target) => Promise<T>,
): Promise<T> {
  const dataDir = stored?.dataDir ?? join(folder, "data");
  if (stored === null) mkdirSync(dataDir, { mode: 0o700 });
  try {
    const [port, readPort] = [freePort(), freePort()];
    const prepared = await prepare.signalbox(tools, { dataDir, port, key: stored?.key ?? null });
    const { key } = prepared;
    const mint = ["key", "mint", "--read", "--data", dataDir];
    const readKey = (await run([...tools.signalbox, ...mint])).stdout.trim();
    const command = [...prepared.command, "--read-listen", `127.0.0.1:${readPort}`];
    const logFile = join(folder, "feed.log");
    const running = await startServer(command, { isReady: answersHttp(readPort), logFile });
    await send({ port, key }, "v7");
    const result = await work({ port, key, readPort, readKey });
    await running.stop();
    return result;
  } finally {
    if (stored === null) rmSync(dataDir, { recursive: true, force: true });
  }
}

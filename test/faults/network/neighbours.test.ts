/** An honest bot beside four connections that send what costs the server most for its size. */
import { expect, test } from "bun:test";
import { cli, freePort, mintKey, startServe } from "../../kit/cli.ts";
import { posting, signal } from "../../kit/setup.ts";
import { report, scale } from "../kit/faults.ts";
import { controls, hostile, type Kind, startNeighbours } from "./_neighbours.ts";

const SPAN_MS = scale(5_000, 1_000);
const WARM_UP_MS = 250;
/** Of the bot, between an answer and its next signal. */
const PAUSE_MS = 3;
const RATIO_MAX = 5;
const LONGEST_MS_MAX = 300;
/** What a busy machine adds to the fastest answers. */
const MEDIAN_MS_MIN = 2;

interface Waits {
  readonly median: number;
  readonly longest: number;
  /** Answers to the neighbours, by status. */
  readonly statuses: Readonly<Record<string, number>>;
}

async function startTarget() {
  const readPort = await freePort();
  const server = await startServe(["--read-listen", `127.0.0.1:${readPort}`, "--rate-limit", "0"]);
  const { key } = await mintKey(server.dataDir);
  const bot = await mintKey(server.dataDir, "bot");
  const url = `${server.url}/v1/signals`;
  const init = posting(bot.key, signal);
  const minted = await cli(["key", "mint", "--read", "--desk", "alpha", "--data", server.dataDir]);
  const neighbour = {
    port: Number(new URL(server.url).port),
    readPort,
    key,
    readKey: minted.stdout.trim(),
  };
  /** How long the bot waits for its answers beside such neighbours. */
  return async (kind: Kind, spanMs = SPAN_MS): Promise<Waits> => {
    const neighbours = await startNeighbours({ ...neighbour, kind });
    const waits: number[] = [];
    const until = performance.now() + spanMs;
    while (performance.now() < until) {
      const startedAt = performance.now();
      const answer = await fetch(url, init);
      await answer.arrayBuffer();
      expect(answer.status).toBe(201);
      waits.push(performance.now() - startedAt);
      await Bun.sleep(PAUSE_MS);
    }
    const statuses = await neighbours.end();
    waits.sort((one, other) => one - other);
    return {
      median: waits[Math.floor(waits.length / 2)] ?? 0,
      longest: waits.at(-1) ?? 0,
      statuses,
    };
  };
}

function describe(kind: Kind, { median, longest, statuses }: Waits): void {
  const count = Object.values(statuses).reduce((sum, n) => sum + n, 0);
  const answers = Object.keys(statuses).join(", ");
  report(
    `beside ${kind}`,
    count,
    `answers ${answers}; the bot waits ${median.toFixed(1)} ms (median), ${longest.toFixed(0)} ms at most`,
  );
}

test("no request slows another desk by more than a few times what an honest one of its size does", async () => {
  const measure = await startTarget();
  // Warms up the server, which compiles its code while it runs.
  for (const kind of [...controls, ...hostile]) await measure(kind, WARM_UP_MS);
  let [median, longest] = [MEDIAN_MS_MIN, LONGEST_MS_MAX / RATIO_MAX];
  const measureControls = async () => {
    for (const kind of controls) {
      const waits = await measure(kind);
      describe(kind, waits);
      median = Math.max(median, waits.median);
      longest = Math.max(longest, waits.longest);
    }
  };
  await measureControls();
  const found: [Kind, Waits][] = [];
  for (const kind of hostile) found.push([kind, await measure(kind)]);
  await measureControls();
  for (const [kind, waits] of found) {
    describe(kind, waits);
    expect(Object.keys(waits.statuses).length, kind).toBeGreaterThan(0);
    expect([kind, waits.median <= RATIO_MAX * median]).toEqual([kind, true]);
    expect([kind, waits.longest <= RATIO_MAX * longest]).toEqual([kind, true]);
  }
});

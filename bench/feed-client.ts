/**
 * Clients of the feed. Usage: bun bench/feed-client.ts LOAD, which is a FeedLoad in JSON.
 *
 * `live`: sends signals at a fixed mean rate and reads them; both in this process, so that one clock measures the
 * time from a signal's 201 to its arrival at the reader. `catch-up`: reads from the beginning, again and again.
 */
import { createHistogram } from "node:perf_hooks";
import { send } from "./signal.ts";

export interface FeedLoad {
  readonly mode: "live" | "catch-up";
  readonly port: number;
  readonly key: string;
  readonly readPort: number;
  readonly readKey: string;
  readonly rate_per_s: number;
  readonly seconds: number;
}

export interface FeedResult {
  readonly signals: number;
  readonly latency_ms_p50: number;
  readonly latency_ms_p99: number;
  readonly requests: number;
}

/** Not counted: the code is still being compiled. */
const WARM_UP_MS = 2_000;
const LATENCY_US_MAX = 60_000_000;

const load = JSON.parse(process.argv[2] ?? "{}") as FeedLoad;
const { mode, port, key, readPort, readKey, rate_per_s, seconds } = load;
const result = mode === "live" ? await live() : await catchUp();
process.stdout.write(`${JSON.stringify(result)}\n`);
process.exit(0);

interface Page {
  readonly ids: string[];
  readonly next: string | null;
  readonly done: boolean;
}

async function read(after: string | null, search: string): Promise<string> {
  const cursor = after === null ? "" : `&after=${after}`;
  const answer = await fetch(`http://127.0.0.1:${readPort}/feed?${search}${cursor}`, {
    headers: { Authorization: `Bearer ${readKey}` },
  });
  const text = await answer.text();
  if (answer.status !== 200) throw new Error(`the feed answered ${answer.status}: ${text}`);
  return text;
}

function parse(text: string): Page {
  const lines = text.trimEnd().split("\n");
  const end = JSON.parse(lines.pop() ?? "") as Omit<Page, "ids">;
  return { ...end, ids: lines.map((line) => (JSON.parse(line) as { id: string }).id) };
}

async function live(): Promise<FeedResult> {
  const stored = new Map<string, number>();
  const arrived = new Map<string, number>();
  const startedAt = performance.now();
  const end = startedAt + WARM_UP_MS + seconds * 1_000;
  let requests = 0;
  let { next } = parse(await read("now", "limit=1"));
  const reading = (async () => {
    while (performance.now() < end + 1_000) {
      const page = parse(await read(next, "wait=1"));
      requests += 1;
      for (const id of page.ids) arrived.set(id, performance.now());
      ({ next } = page);
    }
  })();
  const underWay = new Set<Promise<void>>();
  for (let due = startedAt; due < end; due += (-Math.log(1 - Math.random()) / rate_per_s) * 1_000) {
    const pauseMs = due - performance.now();
    if (pauseMs > 1) await Bun.sleep(pauseMs);
    const sending = remember(stored).finally(() => underWay.delete(sending));
    underWay.add(sending);
  }
  await Promise.all(underWay);
  await reading;
  const latencies = createHistogram({ lowest: 1, highest: LATENCY_US_MAX, figures: 3 });
  for (const [id, at] of stored) {
    const arrivedAt = arrived.get(id);
    if (arrivedAt === undefined) throw new Error(`the reader missed ${id}`);
    if (at < startedAt + WARM_UP_MS) continue;
    latencies.record(Math.max(1, Math.round((arrivedAt - at) * 1_000)));
  }
  return {
    signals: latencies.count,
    latency_ms_p50: latencies.percentile(50) / 1e3,
    latency_ms_p99: latencies.percentile(99) / 1e3,
    requests,
  };
}

/** Sends a signal, and remembers when its 201 was there. */
async function remember(stored: Map<string, number>): Promise<void> {
  const text = await send({ port, key }, "v7");
  stored.set((JSON.parse(text) as { id: string }).id, performance.now());
}

/** Parses only the last line, so as to take little of the processor. */
async function catchUp(): Promise<FeedResult> {
  const end = performance.now() + seconds * 1_000;
  let requests = 0;
  let signals = 0;
  let after: string | null = null;
  while (performance.now() < end) {
    const text = await read(after, "limit=1000");
    requests += 1;
    signals += text.split("\n").length - 2;
    const { next, done } = parse(text.slice(text.trimEnd().lastIndexOf("\n") + 1));
    after = done ? null : next;
  }
  return { signals, latency_ms_p50: 0, latency_ms_p99: 0, requests };
}

/** `bun bench/metrics.ts`: what the metrics cost on the path of a signal. */
import { RequestMetrics } from "../src/ops/metrics/requests.ts";

const ROUNDS = 7;
const SIGNALS = 1_000_000;
const DESKS = 100;

const sent = {
  source: "venue_2",
  type: "crypto",
  symbol: "BTC/USDT",
  side: "open",
  direction: null,
  price: null,
  quantity: null,
  client_signal_id: null,
  metadata: null,
} as const;
const requests = new RequestMetrics();
const owners = Array.from({ length: DESKS * 2 }, (_, index) => ({
  keyId: `01KEY${index}`,
  deskId: index % DESKS,
  deskName: `desk-${index % DESKS}`,
}));

/** Nanoseconds per signal. */
function round(): number {
  const receivedAt = Date.now();
  const startedAt = performance.now();
  for (let index = 0; index < SIGNALS; index++) {
    const owner = owners[index % owners.length];
    if (owner === undefined) continue;
    // As an exchange does it: one look at the clock, one object.
    const durationMs = performance.now() - startedAt + 1;
    const appended = { deduped: false, id: "01SIGNAL" } as const;
    const signal = { ...sent, signal_time: receivedAt - 20 };
    requests.accepted(owner, { requestId: "", receivedAt, signal, appended, durationMs });
  }
  return ((performance.now() - startedAt) * 1e6) / SIGNALS;
}

const figures = Array.from({ length: ROUNDS }, round).toSorted((one, other) => one - other);
const [best = 0, median = 0] = [figures[0], figures[Math.floor(ROUNDS / 2)]];
console.log(`${Math.round(median)} ns per signal (best ${Math.round(best)}), of ${ROUNDS} rounds`);

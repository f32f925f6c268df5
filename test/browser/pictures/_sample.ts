/** A desk as it may look after some weeks: for pictures. */
import type { Database } from "bun:sqlite";
import { monotonicFactory } from "ulid";
import { ActivityRecorder } from "../../../src/console/pages/activity/recorder.ts";
import type { ActivityBatch, KeyMinute } from "../../../src/domain/activity/activity.ts";
import { AppError } from "../../../src/domain/errors.ts";
import { DAY_MS, HOUR_MS, MINUTE_MS } from "../../../src/lib/text/time.ts";
import { openActivity as openActivityFile } from "../../../src/store/sqlite/side/activity.ts";
import { inTransaction } from "../../../src/store/sqlite/files/transaction.ts";
import { batchOf, minuteOf } from "../../domain/_activity.ts";
import { type Random, seededRandom } from "../../kit/random.ts";
import { type Records, recordsIn } from "../../kit/records.ts";

/** What the page of activity shows at first. */
const ACTIVE_MS = 180 * MINUTE_MS;
/** Before it, there are numbers of requests alone. */
const COUNTED_DAYS = 20;
const COUNTED_EVERY_MS = 10 * MINUTE_MS;

interface Trade {
  readonly source: string;
  readonly type: string;
  readonly symbol: string;
  readonly price: number;
  readonly quantities: readonly number[];
  readonly directions: readonly string[];
}

const coin = { source: "venue_2", type: "crypto", directions: ["long", "short"] };
const stock = { source: "venue_3", type: "stock", directions: ["buy", "sell"] };
const event = { source: "venue_1", type: "prediction_market", directions: ["buy", "sell"] };

const coins: readonly Trade[] = [
  { ...coin, symbol: "BTC/USDT", price: 91_240, quantities: [0.05, 0.125, 0.2] },
  { ...coin, symbol: "ETH/USDT", price: 3_182, quantities: [0.8, 1.5, 2] },
  { ...coin, symbol: "SOL/USDT", price: 146, quantities: [12, 30] },
];
const others: readonly Trade[] = [
  { ...event, symbol: "FED-26DEC-CUT-25BP", price: 0.62, quantities: [250, 400, 1_000] },
  { ...stock, symbol: "NVDA", price: 181.35, quantities: [10, 25, 40, 100] },
  { ...stock, symbol: "AAPL", price: 268.9, quantities: [10, 25, 40, 100] },
];

interface Bot {
  readonly label: string;
  readonly ageDays: number;
  readonly lifetimeDays: number | null;
  readonly revokedDaysAgo: number | null;
  /** Requests a minute, about. */
  readonly rate: number;
  readonly trades: readonly Trade[];
}

const unlimited = { lifetimeDays: null, revokedDaysAgo: null };
const bots: readonly Bot[] = [
  { ...unlimited, label: "bot-6", ageDays: 103, revokedDaysAgo: 40, rate: 0.1, trades: coins },
  { ...unlimited, label: "bot-7 staging", ageDays: 85, lifetimeDays: 90, rate: 1, trades: coins },
  { ...unlimited, label: "bot-7", ageDays: 41, lifetimeDays: 90, rate: 14, trades: coins },
  { ...unlimited, label: "arbitrage, Frankfurt", ageDays: 6, rate: 5, trades: others },
];

interface Sent {
  readonly bot: Bot;
  readonly keyId: string;
  /** Epoch milliseconds. */
  readonly at: number;
}

/** `db`: of the folder, for writing, with no server on it. The desk is `alpha`. */
export async function fillDesk(db: Database, dataDir: string): Promise<void> {
  const now = Date.now();
  // The same each time, but for the moment that it ends at.
  const random = seededRandom(7);
  const daysAgo = (days: number) => recordsIn(db, () => now - days * DAY_MS).registry;
  const { desk } = await daysAgo(120).createDesk("alpha", { ifMissing: true });
  const counted: KeyMinute[] = [];
  const sent: Sent[] = [];
  for (const bot of bots) {
    const expiresInMs = bot.lifetimeDays === null ? null : bot.lifetimeDays * DAY_MS;
    const key = { desk: desk.name, label: bot.label, expiresInMs };
    const { id } = (await daysAgo(bot.ageDays).mintKey({ scope: "send", ...key })).record;
    if (bot.label === "bot-7") await revokePredecessor(daysAgo(bot.ageDays - 1), desk.name);
    const usedAt = now - (bot.revokedDaysAgo ?? 0) * DAY_MS - 20_000;
    db.query("UPDATE api_keys SET last_used_at = ? WHERE id = ?").run(usedAt, id);
    counted.push(...countsOf(bot, { deskId: desk.id, keyId: id }, now, random));
    sent.push(...requestsOf(bot, id, now, random));
  }
  sent.sort((one, other) => one.at - other.at);
  const activity = openActivityFile(dataDir, (sentence) => {
    throw new Error(sentence);
  });
  const batch = inTransaction(db, () => record(db, desk.id, sent, random));
  await activity.write(batchOf(...counted));
  await activity.write(batch);
  await activity.close();
}

/** In its turn: the audit is in the order that things were done. */
async function revokePredecessor(registry: Records["registry"], desk: string): Promise<void> {
  const old = (await registry.listKeys(desk)).find(({ label }) => label === "bot-6");
  if (old !== undefined) await registry.revokeKey(old.id, { desk });
}

/** More by day than by night. */
function countsOf(
  { ageDays, revokedDaysAgo, rate }: Bot,
  owner: { deskId: number; keyId: string },
  now: number,
  random: Random,
): KeyMinute[] {
  const steps = (Math.min(ageDays, COUNTED_DAYS) * DAY_MS) / COUNTED_EVERY_MS;
  return Array.from({ length: steps }, (_, index) => {
    const at = now - ACTIVE_MS - (steps - index) * COUNTED_EVERY_MS;
    const start = at - (at % MINUTE_MS);
    const busyness = 1 + 0.6 * Math.sin((((start % DAY_MS) / HOUR_MS - 8) * Math.PI) / 12);
    const mean = rate * (COUNTED_EVERY_MS / MINUTE_MS) * busyness;
    const requests = Math.floor(mean * (0.8 + 0.4 * random()) + random());
    const isOver = revokedDaysAgo !== null;
    const rejected = isOver ? requests : Math.floor(requests * 0.02 * random() + 0.2 * random());
    const unauthorized = isOver ? requests : 0;
    const outcomes = { stored: requests - rejected, duplicate: Math.floor(requests * 0.03) };
    return minuteOf(start, { ...owner, ...outcomes, rejected, unauthorized });
  });
}

function requestsOf(bot: Bot, keyId: string, now: number, random: Random): Sent[] {
  const sent: Sent[] = [];
  for (let minute = 0; minute < ACTIVE_MS / MINUTE_MS; minute += 1) {
    const busyness = 1 + 0.5 * Math.sin(minute / 19) + 0.3 * (random() - 0.5);
    const requests = Math.floor(bot.rate * busyness + random());
    for (let index = 0; index < requests; index += 1) {
      const at = Math.floor(now - ACTIVE_MS + (minute + random()) * MINUTE_MS);
      sent.push({ bot, keyId, at });
    }
  }
  return sent;
}

/** The signals, and what there is to tell of all requests. */
function record(
  db: Database,
  deskId: number,
  sent: readonly Sent[],
  random: Random,
): ActivityBatch {
  let batch = batchOf();
  const recorder = new ActivityRecorder();
  recorder.start((recorded) => (batch = recorded));
  const nextId = monotonicFactory(random);
  sent.forEach((request, index) => {
    const { bot, keyId, at } = request;
    const owner = { deskId, keyId, deskName: "alpha" };
    const error = rejection(bot, random);
    if (error !== null) {
      recorder.rejected(owner, at, Bun.randomUUIDv7("hex", at), error);
      return;
    }
    const id = nextId(at);
    insertSignal(db, { id, index, deskId }, request, random);
    const acceptance = { receivedAt: at, signalTime: null, durationMs: 1 };
    recorder.accepted(owner, { ...acceptance, appended: { deduped: false, id } });
    if (random() > 0.05) return;
    const differs = random() < 0.3 ? (["price", "metadata"] as const) : [];
    recorder.accepted(owner, { ...acceptance, appended: { deduped: true, id, differs } });
  });
  recorder.stop();
  return batch;
}

const errors = [
  new AppError("validation_failed", {
    fields: { side: "must be one of: open, close", takeProfit: "unknown field" },
  }),
  new AppError("bad_request", {
    message: "The body has a duplicate member name, at character 42.",
  }),
];

/** Null for a request that is stored. */
function rejection({ label, revokedDaysAgo }: Bot, random: Random): AppError | null {
  if (revokedDaysAgo !== null) return new AppError("unauthorized");
  const isRejected = random() < (label.endsWith("staging") ? 0.15 : 0.01);
  return isRejected ? oneOf(errors, random) : null;
}

function insertSignal(
  db: Database,
  { id, index, deskId }: { id: string; index: number; deskId: number },
  { bot, keyId, at }: Sent,
  random: Random,
): void {
  const trade = oneOf(bot.trades, random);
  const [long = "", short = ""] = trade.directions;
  const isOpen = random() < 0.55;
  const price = trade.price * (1 + 0.004 * Math.sin(at / 5_000_000) + 0.001 * random());
  const metadata = {
    strategy: bot.label.startsWith("bot") ? "breakout-15m" : "cross-venue",
    model: "2026-11-02",
    confidence: Number((0.55 + 0.4 * random()).toFixed(3)),
    legs: [{ venue: trade.source, fee_bps: 2.5 }],
  };
  db.query(
    `INSERT INTO signals (id, desk_id, key_id, received_at, client_signal_id, source, type, symbol,
       side, direction, price, quantity, signal_time, metadata)
     VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
  ).run(
    id,
    deskId,
    keyId,
    at,
    `${bot.label.replaceAll(/\W+/g, "-")}-${index + 48_210}`,
    trade.source,
    trade.type,
    trade.symbol,
    isOpen ? "open" : "close",
    random() < 0.7 ? long : short,
    Number(price.toFixed(2)),
    oneOf(trade.quantities, random),
    at - 40 - Math.floor(random() * 400),
    JSON.stringify(metadata),
  );
}

function oneOf<T>(items: readonly T[], random: Random): T {
  return items[Math.floor(random() * items.length)] as T;
}

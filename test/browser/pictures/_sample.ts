/** A desk as it may look after some weeks, as far as the home page shows it. */
import type { Database } from "bun:sqlite";
import { ulid } from "ulid";
import type { KeyMinute, RejectReason } from "../../../src/domain/activity/activity.ts";
import { DAY_MS, HOUR_MS, MINUTE_MS } from "../../../src/lib/text/time.ts";
import { openActivity } from "../../../src/store/sqlite/side/activity.ts";
import { batchOf, minuteOf, rejectsOf, repeatsOf } from "../../domain/_activity.ts";
import { type Random, seededRandom } from "../../kit/random.ts";
import { hashSignals, NO_HASH, recordsIn } from "../../kit/records.ts";

const COUNTED_DAYS = 7;
const EVERY_MS = 10 * MINUTE_MS;

/** `rate`: requests per minute, about. */
const bots = [
  { label: "bot-6", ageDays: 103, lifetimeDays: null, rate: 0.1 },
  { label: "bot-7 staging", ageDays: 85, lifetimeDays: 90, rate: 1 },
  { label: "bot-7", ageDays: 41, lifetimeDays: 90, rate: 14 },
  { label: "arbitrage, Frankfurt", ageDays: 6, lifetimeDays: null, rate: 5 },
] as const;

const rejected = [
  {
    minutesAgo: 9,
    count: 30,
    status: 422,
    error: "validation_failed",
    fields: { side: "must be one of: open, close", takeProfit: "unknown field" },
  },
  { minutesAgo: 7, count: 26, status: 400, error: "bad_request", fields: null },
  { minutesAgo: 6, count: 14, status: 401, error: "unauthorized", fields: null },
] as const;

/** `db`: of the folder, for writing, with no server on it. The desk is `alpha`. */
export async function fillDesk(db: Database, dataDir: string): Promise<void> {
  const now = Date.now();
  // The same each time, but for the moment that it ends at.
  const random = seededRandom(7);
  const daysAgo = (days: number) => recordsIn(db, () => now - days * DAY_MS).registry;
  const { desk } = await daysAgo(120).createDesk("alpha", { ifMissing: true });
  const minutes: KeyMinute[] = [];
  const keyIds: string[] = [];
  for (const { label, ageDays, lifetimeDays, rate } of bots) {
    const expiresInMs = lifetimeDays === null ? null : lifetimeDays * DAY_MS;
    const key = { scope: "send", desk: desk.name, label, expiresInMs } as const;
    const { id } = (await daysAgo(ageDays).mintKey(key)).record;
    keyIds.push(id);
    const isOver = label === "bot-6";
    minutes.push(...countsOf(rate, isOver, { deskId: desk.id, keyId: id }, now, random));
  }
  const [revoked = "", , keyId = ""] = keyIds;
  await daysAgo(40).revokeKey(revoked, { desk: desk.name });
  const signalId = ulid(now);
  insertSignal(db, signalId, desk.id, keyId, now - 12_000);
  const owner = { deskId: desk.id, keyId };
  const rejects = rejected.map(({ minutesAgo, count, ...reason }) =>
    rejectsOf([0], now - minutesAgo * MINUTE_MS, {
      ...owner,
      reason: { ...(reason as RejectReason), moreFields: 0 },
      count,
    }),
  );
  const lastAt = now - 3 * MINUTE_MS;
  const many = { ...owner, duplicates: 51, differing: 51, lastAt };
  const repeats = [repeatsOf(signalId, ["price", "metadata"], many)];
  const activity = openActivity(dataDir, (sentence) => {
    throw new Error(sentence);
  });
  await activity.write({ ...batchOf(...minutes, ...rejects), repeats });
  await activity.close();
}

/** More by day than by night. `isOver`: the key is revoked. */
function countsOf(
  rate: number,
  isOver: boolean,
  owner: { deskId: number; keyId: string },
  now: number,
  random: Random,
): KeyMinute[] {
  const steps = (COUNTED_DAYS * DAY_MS) / EVERY_MS;
  return Array.from({ length: steps }, (_, index) => {
    const at = now - index * EVERY_MS;
    const start = at - (at % MINUTE_MS);
    const busyness = 1 + 0.6 * Math.sin((((start % DAY_MS) / HOUR_MS - 8) * Math.PI) / 12);
    const mean = rate * (EVERY_MS / MINUTE_MS) * busyness;
    const requests = Math.floor(mean * (0.8 + 0.4 * random()) + random());
    const rejects = isOver ? requests : Math.floor(requests * 0.02 * random() + 0.2 * random());
    const duplicate = Math.floor(requests * 0.03);
    const outcomes = { stored: requests - rejects, duplicate, rejected: rejects };
    return minuteOf(start, { ...owner, ...outcomes, unauthorized: isOver ? requests : 0 });
  });
}

function insertSignal(
  db: Database,
  id: string,
  deskId: number,
  keyId: string,
  receivedAt: number,
): void {
  const { lastInsertRowid } = db
    .query(
      `INSERT INTO signals (id, desk_id, key_id, received_at, source, type, symbol, side, hash)
     VALUES (?, ?, ?, ?, 'venue_2', 'crypto', 'SOL/USDT', 'open', ${NO_HASH})`,
    )
    .run(id, deskId, keyId, receivedAt);
  hashSignals(db, Number(lastInsertRowid) - 1);
}

/** The keys of a member's desk, as pages show them: a few at a time, newest first. */
import type { Bucket, CountedBucket } from "../../../domain/activity/activity.ts";
import { type ApiKey, EXPIRING_SOON_MS, keyState } from "../../../domain/key/key.ts";
import { startOfSpan, sumOf } from "../../ui/sparkline.tsx";
import { linkTo } from "../../server/links.ts";
import type { ConsoleServices } from "../../server/services.ts";
import { type MemberVisit, readCursor } from "../../server/visit.ts";

const PAGE = 50;
/** Keys that expire soon, above the first page: the first to expire. The others keep their place. */
const EXPIRING_FIRST = 25;
/** Ended keys that are still in use: they come first of all. */
const STILL_IN_USE_SHOWN = 50;
/** Keys that got 401, active ones included. */
const STILL_IN_USE_READ = 1_000;

/** The small chart of each key: days in UTC, with today. */
export const CHART = { width: "day", count: 14 } as const;

/** Returns the start of the last 24 hours: the hour under way, and the 23 before it. */
export function lastDayFrom(now: number): number {
  return startOfSpan({ width: "hour", count: 24, now });
}

/** What was sent with a key. */
interface KeyActivity {
  readonly requests: number;
  readonly rejected: number;
  /** How many were rejected because the key had ended. */
  readonly unauthorized: number;
  readonly lastAt: number;
}

/** Undefined if nothing was sent. */
function activityIn(buckets: readonly CountedBucket[]): KeyActivity | undefined {
  if (buckets.length === 0) return undefined;
  const rejected = sumOf(buckets, "rejected");
  return {
    requests: sumOf(buckets, "stored") + sumOf(buckets, "duplicate") + rejected,
    rejected,
    unauthorized: buckets.reduce((sum, { unauthorized }) => sum + unauthorized, 0),
    lastAt: Math.max(...buckets.map(({ lastAt }) => lastAt)),
  };
}

/** A key and its recent requests. */
export interface KeyUse {
  readonly apiKey: ApiKey;
  /** It expires soon and has no successor. */
  readonly isExpiring: boolean;
  /** In the last 24 hours. */
  readonly activity: KeyActivity | undefined;
  /** The same, of a key that had ended and got 401 since. */
  readonly late: KeyActivity | null;
  /** The days with anything in them: see {@link CHART}. */
  readonly days: readonly Bucket[];
}

export interface KeyListing {
  /** In this order. */
  readonly keys: readonly KeyUse[];
  /** The path of the next page; null: this is the last. */
  readonly older: string | null;
  /** The path of the first page; null: this is it. */
  readonly newest: string | null;
  /** The path of the keys that have ended; null: none has, or this is not the first page. */
  readonly ended: string | null;
}

export async function readKeyList(
  services: ConsoleServices,
  visit: MemberVisit,
): Promise<KeyListing> {
  const { registry } = services;
  const desk = visit.member.deskId;
  const isOfEnded = visit.url.searchParams.get("ended") === "all";
  const before = readCursor(visit.url, "before");
  const isFirst = before === null;
  const isWhole = isFirst && !isOfEnded;
  const pathTo = (key?: ApiKey) =>
    linkTo("/keys", { ended: isOfEnded ? "all" : null, before: key?.id });
  const state = isOfEnded ? "ended" : "active";
  const found = await registry.pageKeys({ desk, state, before, limit: PAGE + 1 });
  const page = found.slice(0, PAGE);
  const expiring = isOfEnded ? [] : await expiringKeys(services, visit);
  const first = expiring.slice(0, EXPIRING_FIRST);
  const inUse = isWhole ? (await keysStillInUse(services, visit)).slice(0, STILL_IN_USE_SHOWN) : [];
  const ended = isWhole ? await registry.pageKeys({ desk, state: "ended", limit: 1 }) : [];
  const keys = [
    ...inUse,
    ...(isFirst ? first : []),
    ...page.filter(({ id }) => !first.some((key) => key.id === id)),
  ];
  return {
    keys: await readUse(services, visit, keys, expiring),
    older: found.length > PAGE ? pathTo(page.at(-1)) : null,
    newest: isFirst ? null : pathTo(),
    ended: ended.length > 0 ? "/keys?ended=all" : null,
  };
}

/** Those that expire soon and have no successor, the first to expire first. */
export async function expiringKeys(
  { registry }: ConsoleServices,
  { member, now }: MemberVisit,
): Promise<ApiKey[]> {
  return registry.expiringKeys(member.deskId, now + EXPIRING_SOON_MS);
}

/**
 * Ended keys that something still sends with, the latest request first. Keys that are active again, since
 * their desk was archived and brought back, have got 401 too.
 */
export async function keysStillInUse(
  services: ConsoleServices,
  visit: MemberVisit,
): Promise<ApiKey[]> {
  const { activity } = services;
  const { member, now } = visit;
  const from = lastDayFrom(now);
  const ids = await activity.keysStillInUse(member.deskId, from, STILL_IN_USE_READ);
  const found = await Promise.all(ids.map((id) => findKey(services, visit, id)));
  return found.filter((key) => key !== null).filter((key) => keyState(key, now) !== "active");
}

/** `expiring`: see {@link expiringKeys}. */
export async function readUse(
  { activity }: ConsoleServices,
  { member: { deskId }, now }: MemberVisit,
  keys: readonly ApiKey[],
  expiring: readonly ApiKey[],
): Promise<KeyUse[]> {
  const ofKeys = { deskId, keyIds: keys.map(({ id }) => id) };
  const hours = await activity.buckets({ ...ofKeys, width: "hour", from: lastDayFrom(now) });
  const from = startOfSpan({ ...CHART, now });
  const days = await activity.buckets({ ...ofKeys, width: CHART.width, from });
  return keys.map((apiKey) => {
    const used = activityIn(hours.filter(({ keyId }) => keyId === apiKey.id));
    const isLate =
      used !== undefined && used.unauthorized > 0 && keyState(apiKey, now) !== "active";
    return {
      apiKey,
      isExpiring: expiring.some(({ id }) => id === apiKey.id),
      activity: used,
      late: isLate ? used : null,
      days: days.filter(({ keyId }) => keyId === apiKey.id),
    };
  });
}

/** In a list to choose from, so that the page stays small. */
const OFFERED_MAX = 100;

/** Null for an id that is unknown or another desk's. */
export async function findKey(
  { registry }: ConsoleServices,
  { member }: MemberVisit,
  id: string,
): Promise<ApiKey | null> {
  const key = await registry.findKey(id, { desk: member.deskId });
  // Only the id's own spelling: the registry also finds it in lower case.
  return key?.id === id ? key : null;
}

/** To choose from: the newest of the active keys, then of those that have ended, and the chosen one. */
export async function offeredKeys(
  services: ConsoleServices,
  visit: MemberVisit,
  chosenId: string | undefined,
): Promise<ApiKey[]> {
  const { registry } = services;
  const { deskId: desk } = visit.member;
  const some = { desk, scope: "send", limit: OFFERED_MAX } as const;
  const active = await registry.pageKeys({ ...some, state: "active" });
  const ended = await registry.pageKeys({ ...some, state: "ended" });
  const offered = [...active, ...ended].slice(0, OFFERED_MAX);
  if (chosenId === undefined || offered.some(({ id }) => id === chosenId)) return offered;
  const chosen = await findKey(services, visit, chosenId);
  return chosen === null ? offered : [...offered, chosen];
}

/** What keys were used for in the last 24 hours, and which of the ended ones something still sends with. */
import { activityWidths, type KeyActivity, startOfBucket } from "../../domain/activity.ts";
import { type ApiKey, keyState } from "../../domain/key.ts";
import { newestAgo } from "../ui/relative.ts";

/** Where the last 24 hours begin: they are whole ones, but for the one that is under way. */
export function lastDayFrom(now: number): number {
  const { ms } = activityWidths.hour;
  return startOfBucket(now, ms) - 23 * ms;
}

/** Null for a key that works, and for one that nothing has sent with since it ended. */
export function knocksOf(
  key: Pick<ApiKey, "expires_at" | "revoked_at">,
  activity: KeyActivity | undefined,
  now: number,
): Knocks | null {
  if (activity === undefined || activity.unauthorized === 0) return null;
  if (keyState(key, now) === "active") return null;
  return { count: activity.unauthorized, lastAt: activity.lastAt };
}

/** Requests of the last 24 hours with a key that has ended. */
export interface Knocks {
  readonly count: number;
  /** Epoch milliseconds. */
  readonly lastAt: number;
}

/** Such as "12 requests in the last 24 hours, the last 3 minutes ago, each answered 401 and not stored". */
export function describeKnocks({ count, lastAt }: Knocks, now: number): string {
  const answered = count === 1 ? "answered" : "each answered";
  return `${requests(count)} in the last 24 hours, ${newestAgo(count, lastAt, now)}, ${answered} 401 and not stored`;
}

export function requests(count: number): string {
  return count === 1 ? "1 request" : `${count.toLocaleString("en")} requests`;
}

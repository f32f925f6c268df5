/** The use of keys, in words: whether an old key may be revoked yet, and ended keys that are still in use. */
import { activityWidths, type KeyActivity, startOfBucket } from "../../domain/activity.ts";
import { type ApiKey, type KeyLife, keyState } from "../../domain/key.ts";
import { timeAgo } from "../ui/words.ts";
import { HOUR_MS } from "../../domain/time.ts";

/** Requests in the last 24 hours with a key that had ended. */
export interface LateUse {
  readonly count: number;
  /** Epoch milliseconds. */
  readonly lastAt: number;
}

/** Returns the start of the last 24 hours: the hour under way, and the 23 before it. */
export function lastDayFrom(now: number): number {
  const { ms } = activityWidths.hour;
  return startOfBucket(now, ms) - 23 * ms;
}

/** Null for an active key, and for a key that was not used after it ended. */
export function lateUseOf(
  key: KeyLife,
  activity: KeyActivity | undefined,
  now: number,
): LateUse | null {
  if (activity === undefined || activity.unauthorized === 0) return null;
  if (keyState(key, now) === "active") return null;
  return { count: activity.unauthorized, lastAt: activity.lastAt };
}

/** Such as "12 requests in the last 24 hours, each answered 401 and not stored". */
export function describeLateUse({ count }: LateUse): string {
  const answered = count === 1 ? "answered" : "each answered";
  return `${requests(count)} in the last 24 hours, ${answered} 401 and not stored`;
}

export function requests(count: number): string {
  return count === 1 ? "1 request" : `${count.toLocaleString("en")} requests`;
}

/** A key that was used within so long has somebody who uses it. */
const IN_USE_MS = HOUR_MS;

/** A sentence about a key that has a successor. `name` begins it, such as "The old key". */
export function overlapAdvice(
  name: string,
  key: KeyLife & Pick<ApiKey, "last_used_at">,
  now: number,
): string {
  const used = lastUse(name, key, now);
  if (keyState(key, now) !== "active") return `${used}.`;
  if (key.last_used_at === null) return `${used}: it is safe to revoke.`;
  return now - key.last_used_at < IN_USE_MS
    ? `${used}: not safe to revoke yet.`
    : `${used}: safe to revoke once everything that used it has the new key.`;
}

/** Without a full stop. */
export function lastUse(
  name: string,
  { last_used_at }: Pick<ApiKey, "last_used_at">,
  now: number,
): string {
  return last_used_at === null
    ? `${name} has never been used`
    : `${name} was last used ${timeAgo(last_used_at, now)}`;
}

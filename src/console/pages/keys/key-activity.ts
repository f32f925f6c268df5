/** Ended keys that are still in use. */
import {
  activityWidths,
  type KeyActivity,
  startOfBucket,
} from "../../../domain/activity/activity.ts";
import { type KeyLife, keyState } from "../../../domain/key/key.ts";
import { counted } from "../../ui/words.ts";

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
  return `${counted(count, "request")} in the last 24 hours, ${answered} 401 and not stored`;
}

/** What a desk sent in the last hour, and how many signals are usual at that time of day. */
import type { Bucket, Outcomes } from "../../../domain/activity/activity.ts";
import { latelyFrom, type Usual, usualFrom, usualOf } from "../../../domain/activity/usual.ts";
import type { Activity } from "../../../domain/storage/activity.ts";
import { sumOf } from "../../ui/sparkline.tsx";
import { HOUR_MS, MINUTE_MS } from "../../../lib/text/time.ts";

/** In this minute and the 59 before it. */
export interface LastHour extends Outcomes {
  /** Null: the desk sent nothing before today. */
  readonly usual: Usual | null;
  /** In this minute and the `LATELY_MINUTES` - 1 before it. */
  readonly lately: Outcomes;
}

export async function readLastHour(
  activity: Activity,
  deskId: number,
  now: number,
): Promise<LastHour> {
  const desk = { deskId, keyIds: null };
  const minutes = await activity.buckets({
    ...desk,
    width: "minute",
    from: now - HOUR_MS + MINUTE_MS,
  });
  const hours = await activity.buckets({
    ...desk,
    width: "hour",
    from: usualFrom(now),
  });
  const from = latelyFrom(now);
  return {
    ...outcomesOf(minutes),
    usual: usualOf(hours, now),
    lately: outcomesOf(minutes.filter(({ start }) => start >= from)),
  };
}

function outcomesOf(buckets: readonly Bucket[]): Outcomes {
  return {
    stored: sumOf(buckets, "stored"),
    duplicate: sumOf(buckets, "duplicate"),
    rejected: sumOf(buckets, "rejected"),
  };
}

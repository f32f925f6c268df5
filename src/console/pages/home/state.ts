/** Whether signals arrive as usual, in words. */
import type { Outcomes } from "../../../domain/activity/activity.ts";
import type { Tone } from "../../ui/components.tsx";
import { describeSpan } from "../../ui/words.ts";
import { LATELY_MINUTES, type LastHour } from "./last-hour.ts";
import { HOUR_MS } from "../../../lib/text/time.ts";

/** A desk is silent when it sent nothing for an hour, and for three times the usual interval. */
const INTERVALS_MAX = 3;
/** A quarter of the usual rate is few, where the usual is enough to tell. */
const FEW = 1 / 4;
const USUAL_MIN = 20;
/** From this share of rejected requests on, the desk is told. */
const REJECTED_SHARE = 1 / 10;

interface DeskState {
  readonly tone: Tone;
  readonly headline: string;
  /** Whether rejected requests are the problem. */
  readonly isAboutRejects?: boolean;
}

/** `newestAt`: when the newest signal was stored, epoch milliseconds; null without signals. */
export function deskState(newestAt: number | null, lastHour: LastHour, now: number): DeskState {
  const { stored, duplicate, rejected, usual, lately } = lastHour;
  if (stored + duplicate === 0 && rejected > 0) {
    return { tone: "bad", headline: "Every request is rejected", isAboutRejects: true };
  }
  const share = shareOfRejected(lately);
  if (share >= REJECTED_SHARE) {
    // Not 100 while some are stored.
    const headline = `${Math.floor(share * 100)}% of the requests of the last ${LATELY_MINUTES} minutes were rejected`;
    return { tone: "warn", headline, isAboutRejects: true };
  }
  if (newestAt === null) return { tone: "calm", headline: "No signal yet" };
  const silence = now - newestAt;
  const interval = usual === null || usual === 0 ? 0 : HOUR_MS / usual;
  if (silence > Math.max(HOUR_MS, INTERVALS_MAX * interval)) {
    const isUsual = usual !== null && usual > 0;
    const headline = `No signal for ${describeSpan(silence - (silence % HOUR_MS))}`;
    return isUsual
      ? { tone: "warn", headline: `${headline}; ${usually(usual)}` }
      : { tone: "calm", headline };
  }
  if (usual !== null && usual >= USUAL_MIN && stored < usual * FEW) {
    return { tone: "warn", headline: "Fewer signals than usual" };
  }
  return { tone: "good", headline: "Signals are arriving" };
}

/** 0 without requests. */
function shareOfRejected({ stored, duplicate, rejected }: Outcomes): number {
  return rejected === 0 ? 0 : rejected / (stored + duplicate + rejected);
}

const about = new Intl.NumberFormat("en", { maximumSignificantDigits: 2 });

/** Such as "usually about 200 per hour". */
export function usually(usual: number): string {
  return usual < 1
    ? "usually less than 1 per hour"
    : `usually about ${about.format(usual)} per hour`;
}

/** Whether signals arrive as usual, in words. */
import type { Tone } from "../ui/components.tsx";
import { describeSpan } from "../ui/words.ts";
import type { LastHour } from "./last-hour.ts";
import { HOUR_MS } from "../../domain/time.ts";

/** A desk is silent when it sent nothing for an hour, and for three times the usual interval. */
const INTERVALS_MAX = 3;
/** A quarter of the usual rate is few, where the usual is enough to tell. */
const FEW = 1 / 4;
const USUAL_MIN = 20;

interface DeskState {
  readonly tone: Tone;
  readonly headline: string;
}

/** `newestAt`: when the newest signal was stored, epoch milliseconds; null without signals. */
export function deskState(newestAt: number | null, lastHour: LastHour, now: number): DeskState {
  const { stored, duplicate, rejected, usual } = lastHour;
  if (stored + duplicate === 0 && rejected > 0) {
    return { tone: "bad", headline: "Every request is rejected" };
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

const about = new Intl.NumberFormat("en", { maximumSignificantDigits: 2 });

/** Such as "usually about 200 per hour". */
export function usually(usual: number): string {
  return usual < 1
    ? "usually less than 1 per hour"
    : `usually about ${about.format(usual)} per hour`;
}

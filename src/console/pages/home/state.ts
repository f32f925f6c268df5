/** Whether signals arrive as usual, in words. */
import {
  LATELY_MINUTES,
  shareOfManyRejected,
  usually,
  usualRate,
} from "../../../domain/activity/usual.ts";
import {
  isSilent,
  SILENCE_DEFAULT,
  silenceAllowedMs,
  type SilenceRule,
} from "../../../domain/desk/silence.ts";
import type { Tone } from "../../ui/components.tsx";
import type { LastHour } from "./last-hour.ts";
import { HOUR_MS, MINUTE_MS } from "../../../lib/text/time.ts";
import { describeSpan } from "../../../lib/text/words.ts";

/** A quarter of the usual rate is few, where the usual is enough to tell. */
const FEW = 1 / 4;
const USUAL_MIN = 20;

interface DeskState {
  readonly tone: Tone;
  readonly headline: string;
  /** Whether rejected requests are the problem. */
  readonly isAboutRejects?: boolean;
}

/** `newestAt`: when the newest signal was stored, epoch milliseconds; null without signals. */
export function deskState(
  newestAt: number | null,
  lastHour: LastHour,
  rule: SilenceRule,
  now: number,
): DeskState {
  const { stored, duplicate, rejected, usual, lately } = lastHour;
  if (stored + duplicate === 0 && rejected > 0) {
    return { tone: "bad", headline: "Every request is rejected", isAboutRejects: true };
  }
  const share = shareOfManyRejected(lately);
  if (share !== null) {
    // Not 100 while some are stored.
    const headline = `${Math.floor(share * 100)}% of the requests of the last ${LATELY_MINUTES} minutes were rejected`;
    return { tone: "warn", headline, isAboutRejects: true };
  }
  if (newestAt === null) return { tone: "calm", headline: "No signal yet" };
  const silence = now - newestAt;
  const rate = usual === null ? 0 : usualRate(usual, now);
  const headline = `No signal for ${describeSpan(silence - (silence % (silence < HOUR_MS ? MINUTE_MS : HOUR_MS)))}`;
  if (isSilent(newestAt, rule, usual, now)) {
    return { tone: "warn", headline: rate > 0 ? `${headline}; ${usually(rate)}` : headline };
  }
  if (silence > (silenceAllowedMs(SILENCE_DEFAULT, usual) ?? HOUR_MS)) {
    return { tone: "calm", headline };
  }
  if (rate >= USUAL_MIN && stored < rate * FEW) {
    return { tone: "warn", headline: "Fewer signals than usual" };
  }
  return { tone: "good", headline: "Signals are arriving" };
}

/** Requests over time as bars, drawn by the server. */
import type { VNode } from "preact";
import {
  type ActivityWidth,
  activityWidths,
  type Bucket,
  type Outcomes,
  startOfBucket,
} from "../../domain/activity/activity.ts";
import { useVisit } from "./context.ts";
import { plural } from "../../lib/text/words.ts";

/** Drawn from the ground up. */
export const kinds = ["stored", "duplicate", "rejected"] as const;
const none: Outcomes = { stored: 0, duplicate: 0, rejected: 0 };

/** In units of the drawing, which is stretched to its place. */
export const HEIGHT = 1_000;
const BAR = 5;
export const STEP = 6;

export interface Span {
  readonly width: ActivityWidth;
  /** How many buckets, the one under way included. */
  readonly count: number;
  /** Epoch milliseconds. */
  readonly now: number;
}

/** Returns the start of the first bucket. */
export function startOfSpan({ width, count, now }: Span): number {
  const { ms } = activityWidths[width];
  return startOfBucket(now, ms) - (count - 1) * ms;
}

export function sumOf(buckets: readonly Outcomes[], kind: keyof Outcomes): number {
  return buckets.reduce((sum, bucket) => sum + bucket[kind], 0);
}

/** Such as "214 stored" or "3 duplicates". */
export function describeSum(buckets: readonly Outcomes[], kind: keyof Outcomes): string {
  const sum = sumOf(buckets, kind);
  return kind === "duplicate" ? plural(sum, kind) : `${sum.toLocaleString("en")} ${kind}`;
}

export interface Drawing extends Omit<Span, "now"> {
  /** Those with anything in them. */
  readonly buckets: readonly Bucket[];
  /** Read out, with the sums. */
  readonly label: string;
}

/** Returns a bar for each bucket of the span. */
export function barsOf({ buckets, ...span }: Span & Pick<Drawing, "buckets">): Bucket[] {
  const start = startOfSpan(span);
  const { ms } = activityWidths[span.width];
  const byStart = new Map(buckets.map((bucket) => [bucket.start, bucket]));
  return Array.from({ length: span.count }, (_, index) => {
    const at = start + index * ms;
    return byStart.get(at) ?? { start: at, ...none };
  });
}

export function totalOf(bar: Outcomes): number {
  return kinds.reduce((sum, kind) => sum + bar[kind], 0);
}

/** A small chart, without numbers. */
export function Sparkline({ label, ...drawing }: Drawing): VNode {
  const bars = barsOf({ ...drawing, now: useVisit().now });
  return (
    <svg class="spark" {...frameOf(bars, label)}>
      <Bars bars={bars} top={Math.max(1, ...bars.map(totalOf))} shareMin={5 / 100} />
    </svg>
  );
}

export function frameOf(bars: readonly Bucket[], label: string) {
  return {
    viewBox: `0 0 ${bars.length * STEP - 1} ${HEIGHT}`,
    preserveAspectRatio: "none",
    role: "img",
    "aria-label": `${label}: ${kinds.map((kind) => describeSum(bars, kind)).join(", ")}`,
  } as const;
}

/** `top`: the number at the top of the drawing. `shareMin`: of its height, so that what is not nothing can be seen. */
export function Bars({
  bars,
  top,
  shareMin,
}: {
  bars: readonly Outcomes[];
  top: number;
  shareMin: number;
}): VNode {
  const least = shareMin * HEIGHT;
  const room = HEIGHT - (kinds.length - 1) * least;
  const heights = bars.map((bar) =>
    kinds.map((kind) =>
      bar[kind] === 0 ? 0 : Math.max(least, Math.round((bar[kind] / top) * room)),
    ),
  );
  return (
    <>
      {kinds.map((kind, index) => {
        const path = heights.map((bar, at) => barPath(bar, index, at)).join("");
        return path === "" ? null : <path class={kind} d={path} />;
      })}
    </>
  );
}

function barPath(bar: readonly number[], index: number, at: number): string {
  const height = bar[index] ?? 0;
  if (height === 0) return "";
  const below = bar.slice(0, index).reduce((sum, each) => sum + each, 0);
  return `M${at * STEP} ${HEIGHT - below}v-${height}h${BAR}v${height}z`;
}

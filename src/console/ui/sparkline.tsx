/** Small charts of requests over time, drawn by the server. */
import type { VNode } from "preact";
import {
  type ActivityWidth,
  activityWidths,
  type Bucket,
  type Outcomes,
  startOfBucket,
} from "../../domain/activity.ts";

/** Drawn from the ground up. */
const kinds = ["stored", "duplicate", "rejected"] as const;
const none: Outcomes = { stored: 0, duplicate: 0, rejected: 0 };

/** In units of the drawing, which is stretched to its place. */
const HEIGHT = 100;
const BAR = 5;
const STEP = 6;
/** So that what is not nothing can be seen. */
const HEIGHT_MIN = { small: 5, large: 2 };

interface Span {
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

/** Such as "214 stored, 3 duplicate, 1 rejected". */
function describeOutcomes(buckets: readonly Outcomes[]): string {
  return kinds.map((kind) => `${sumOf(buckets, kind).toLocaleString("en")} ${kind}`).join(", ");
}

/** `label` is read out, with the sums. `isLarge`: each bar says its numbers. */
export function Sparkline({
  buckets,
  label,
  isLarge = false,
  ...span
}: Span & {
  /** Those with anything in them. */
  buckets: readonly Bucket[];
  label: string;
  isLarge?: boolean;
}): VNode {
  const start = startOfSpan(span);
  const { ms } = activityWidths[span.width];
  const byStart = new Map(buckets.map((bucket) => [bucket.start, bucket]));
  const bars = Array.from(
    { length: span.count },
    (_, index) => byStart.get(start + index * ms) ?? none,
  );
  const heights = heightsOf(bars, isLarge ? HEIGHT_MIN.large : HEIGHT_MIN.small);
  return (
    <svg
      class="spark"
      viewBox={`0 0 ${span.count * STEP - 1} ${HEIGHT}`}
      preserveAspectRatio="none"
      role="img"
      aria-label={`${label}: ${describeOutcomes(bars)}`}
    >
      {kinds.map((kind, index) => {
        const path = heights.map((bar, at) => barPath(bar, index, at)).join("");
        return path === "" ? null : <path class={kind} d={path} />;
      })}
      {isLarge &&
        bars.map((bar, index) => (
          <rect x={index * STEP} width={STEP} height={HEIGHT}>
            <title>{`${ago(span.count - 1 - index, span.width)}: ${describeOutcomes([bar])}`}</title>
          </rect>
        ))}
    </svg>
  );
}

/** The height of each kind in each bar. */
function heightsOf(bars: readonly Outcomes[], heightMin: number): number[][] {
  const most = Math.max(1, ...bars.map((bar) => kinds.reduce((sum, kind) => sum + bar[kind], 0)));
  const room = HEIGHT - (kinds.length - 1) * heightMin;
  return bars.map((bar) =>
    kinds.map((kind) => {
      if (bar[kind] === 0) return 0;
      return Math.max(heightMin, Math.round((bar[kind] / most) * room));
    }),
  );
}

function barPath(bar: readonly number[], index: number, at: number): string {
  const height = bar[index] ?? 0;
  if (height === 0) return "";
  const below = bar.slice(0, index).reduce((sum, each) => sum + each, 0);
  return `M${at * STEP} ${HEIGHT - below}v-${height}h${BAR}v${height}z`;
}

function ago(count: number, width: ActivityWidth): string {
  if (count === 0) return width === "day" ? "Today (UTC)" : `This ${width}`;
  return `${count} ${width}${count === 1 ? "" : "s"} ago`;
}

/** A large one, with its numbers and its ends. */
export function Chart({
  ends,
  ...drawing
}: Omit<Parameters<typeof Sparkline>[0], "isLarge"> & {
  ends: readonly [first: string, last: string];
}): VNode {
  return (
    <figure class="spark-figure">
      <Sparkline {...drawing} isLarge />
      <figcaption>
        <span>{ends[0]}</span>
        <span class="sums">
          {kinds.map((kind) => (
            <span>
              <span class={`swatch ${kind}`} />
              {sumOf(drawing.buckets, kind).toLocaleString("en")} {kind}
            </span>
          ))}
        </span>
        <span>{ends[1]}</span>
      </figcaption>
    </figure>
  );
}

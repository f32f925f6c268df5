/** Requests over time with a scale and times. chart.js adds the numbers of the bar that somebody points at. */
import type { VNode } from "preact";
import type { ActivityWidth, Bucket, Outcomes } from "../../domain/activity/activity.ts";
import {
  barsOf,
  Bars,
  describeSum,
  type Drawing,
  frameOf,
  HEIGHT,
  kinds,
  STEP,
  totalOf,
} from "./sparkline.tsx";
import { useVisit } from "./context.ts";
import { Day, Moment } from "./times.tsx";

/** Times below the chart: so many if they divide the number of bars. */
const TIMES = [7, 6] as const;

/** `hasLegend`: names the colours, with the sums. `hidden`: counted, but not drawn. */
export function Chart({
  hasLegend = true,
  hidden = [],
  label,
  ...drawing
}: Drawing & { hasLegend?: boolean; hidden?: readonly (keyof Outcomes)[] }): VNode {
  const all = barsOf({ ...drawing, now: useVisit().now });
  const none = Object.fromEntries(hidden.map((kind) => [kind, 0]));
  const bars = all.map((bar) => ({ ...bar, ...none }));
  const end = bars.length * STEP - 1;
  const top = topOf(Math.max(...bars.map(totalOf)));
  return (
    <figure class="chart">
      <div class="scale" aria-hidden="true">
        {[top, top / 2, 0].map((number) => (
          <span>{compact.format(number)}</span>
        ))}
      </div>
      <div class="bars" data-width={drawing.width}>
        <svg {...frameOf(all, label)}>
          <path class="lines" d={`M0 0H${end}M0 ${HEIGHT / 2}H${end}`} />
          <Bars bars={bars} top={top} shareMin={1 / 100} />
          {bars.map((bar, index) => totalOf(bar) > 0 && <Target bar={bar} index={index} />)}
        </svg>
      </div>
      <div class="times" aria-hidden="true">
        {timesOf(bars).map(({ start }) => (
          <span>
            <Start at={start} width={drawing.width} />
          </span>
        ))}
      </div>
      {hasLegend && (
        <figcaption>
          {kinds.map((kind) => (
            <span>
              <span class={`swatch ${kind}`} />
              {describeSum(all, kind)}
            </span>
          ))}
        </figcaption>
      )}
    </figure>
  );
}

const compact = new Intl.NumberFormat("en", { notation: "compact" });

/** A round number, whose half is a whole one: 2, 4, … 10, 20, 30, … */
function topOf(most: number): number {
  const power = 10 ** Math.floor(Math.log10(Math.max(1, most)));
  const step = power === 1 ? 2 : power;
  return Math.max(step, Math.ceil(most / step) * step);
}

/** What the pointer finds, and chart.js reads. */
function Target({ bar, index }: { bar: Bucket; index: number }): VNode {
  const numbers = Object.fromEntries(
    kinds.map((kind) => [`data-${kind}`, bar[kind] === 0 ? undefined : bar[kind]]),
  );
  return <rect data-at={bar.start} {...numbers} x={index * STEP} width={STEP} height={HEIGHT} />;
}

function timesOf(bars: readonly Bucket[]): readonly Bucket[] {
  const times = TIMES.find((number) => bars.length % number === 0) ?? 1;
  return bars.filter((_, index) => index % (bars.length / times) === 0);
}

/** Days are days of UTC, for everybody. */
function Start({ at, width }: { at: number; width: ActivityWidth }): VNode {
  return width === "day" ? <Day at={at} /> : <Moment at={at} />;
}

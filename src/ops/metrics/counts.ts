/** Counters and histograms for the path of a signal: additions to plain numbers. */
import { type Histogram, type Metric, metricText, type Sample } from "./text.ts";

/** Value of the label → count. */
export type Counts = Record<string, number>;

export function increment(counts: Counts, value: string | number): void {
  counts[value] = (counts[value] ?? 0) + 1;
}

export function countsText(name: Metric, label: string, counts: Readonly<Counts>): string {
  const samples = Object.entries(counts).map(([value, count]): Sample => [
    { [label]: value },
    count,
  ]);
  return metricText(name, samples);
}

/** A histogram without labels. */
export class Distribution {
  readonly #bounds: Float64Array;
  /** Per bucket, the last for what is beyond all bounds. */
  readonly #counts: Float64Array;
  #sum = 0;

  /** `bounds`: the upper bounds of the buckets, rising. */
  constructor(bounds: readonly number[]) {
    this.#bounds = Float64Array.from(bounds);
    this.#counts = new Float64Array(bounds.length + 1);
  }

  add(value: number): void {
    const bounds = this.#bounds;
    let bucket = 0;
    while (bucket < bounds.length && value > (bounds[bucket] ?? 0)) bucket += 1;
    this.#counts[bucket] = (this.#counts[bucket] ?? 0) + 1;
    this.#sum += value;
  }

  text(name: Histogram): string {
    let count = 0;
    const buckets = Array.from(this.#counts, (more, index): Sample => {
      count += more;
      return [{ le: String(this.#bounds[index] ?? "+Inf") }, count, "_bucket"];
    });
    return metricText(name, [...buckets, [{}, this.#sum, "_sum"], [{}, count, "_count"]]);
  }
}

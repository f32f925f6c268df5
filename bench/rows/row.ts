/** A row of the table of goals: a load, a goal, and how to measure whether it is met. */
import type { Round } from "./round.ts";

/** One thing that is measured. */
export interface Figure {
  readonly name: string;
  readonly unit: "×" | "ms" | "µs" | "MB" | "bytes" | "/s";
  /** Where the goal is; none: the figure is stated only. */
  readonly atLeast?: number;
  readonly atMost?: number;
}

/** What one round gave. */
export type Result = readonly [figure: Figure, value: number];

export interface Row {
  readonly load: string;
  readonly goal: string;
  /** Why it cannot be measured here and now, and what to do; null where it can. */
  lacks?(round: Round): string | null;
  measure(round: Round): Promise<Result[]>;
}

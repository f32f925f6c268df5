/** A row of the table of goals: a load, a goal, and how to measure whether the goal is met. */
import type { Round } from "./round.ts";

/** One thing that is measured. */
export interface Figure {
  readonly name: string;
  readonly unit: "×" | "ms" | "MB" | "bytes" | "/s";
  /** The goal; a figure with neither is stated only. */
  readonly atLeast?: number;
  readonly atMost?: number;
}

/** What one round gave. */
export type Result = readonly [figure: Figure, value: number];

export interface Row {
  readonly load: string;
  readonly goal: string;
  /** Why the row cannot be measured, and what to do; null if it can. */
  lacks?(round: Round): string | null;
  measure(round: Round): Promise<Result[]>;
}

/** For rows about a database with stored signals. */
export function storedLack({ place }: Round): string | null {
  return place.stored === null ? "needs --stored N, as in --stored 10000000" : null;
}

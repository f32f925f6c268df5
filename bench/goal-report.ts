/** The table of goals as Markdown: what was measured, and whether it is what it should be. */
import type { Outcome } from "./goals.ts";
import { formatNumber, table } from "./markdown.ts";
import { rowsByName } from "./rows/all.ts";
import type { Figure } from "./rows/row.ts";
import { median } from "./statistics.ts";

export function goalReport(outcomes: readonly Outcome[]): string {
  const headings = ["Load", "Goal", "Measured", "Median", "Lowest to highest", "Met"];
  return table(headings, outcomes.flatMap(lines), [3, 4]);
}

/** A line for each figure; load and goal are on the first only. */
function lines(outcome: Outcome): string[][] {
  const { load, goal } = rowsByName[outcome.name];
  const measured = figures(outcome).map(({ figure, values }) => figureLine(figure, values));
  const failed =
    outcome.failure === null ? [] : [[escape(`not measured: ${outcome.failure}`), "", "", ""]];
  return [...measured, ...failed].map((line, number) =>
    number === 0 ? [load, goal, ...line] : ["", "", ...line],
  );
}

function figureLine(figure: Figure, values: readonly number[]): string[] {
  const format = (value: number): string => `${formatNumber(value)} ${figure.unit}`;
  const [low, high] = [Math.min(...values), Math.max(...values)];
  const range = `${formatNumber(low)} to ${format(high)}`;
  return [
    figure.name,
    format(median(values)),
    values.length === 1 ? "" : range,
    met(figure, values),
  ];
}

/** By the median. */
function met(figure: Figure, values: readonly number[]): string {
  const value = median(values);
  if (figure.atLeast !== undefined) return value >= figure.atLeast ? "yes" : "no";
  if (figure.atMost !== undefined) return value <= figure.atMost ? "yes" : "no";
  return "";
}

/** The same figure of all rounds together, in the order of the first that had it. */
function figures({ rounds }: Outcome): { figure: Figure; values: number[] }[] {
  const byName = new Map<string, { figure: Figure; values: number[] }>();
  for (const [figure, value] of rounds.flat()) {
    const known = byName.get(figure.name);
    if (known === undefined) byName.set(figure.name, { figure, values: [value] });
    else known.values.push(value);
  }
  return [...byName.values()];
}

function escape(text: string): string {
  return text.replaceAll("|", "\\|");
}

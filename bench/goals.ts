/** Measures the rows of the table of goals, in rounds. */
import type { Figures } from "./figures.ts";
import { endAll } from "./process.ts";
import { rowsByName } from "./rows/all.ts";
import type { RowName } from "./rows/names.ts";
import { type Place, Round } from "./rows/round.ts";
import type { Result } from "./rows/row.ts";
import { note } from "./tools.ts";

/** What became of a row. */
export interface Outcome {
  readonly name: RowName;
  /** Of each round that gave any. */
  readonly rounds: (readonly Result[])[];
  /** Why it was not measured, or not in every round; null where it was. */
  failure: string | null;
  /** Whether something went wrong, other than that something was not there. */
  isError: boolean;
}

export interface Goals {
  readonly outcomes: readonly Outcome[];
  /** Of each round, what was measured for its rows. */
  readonly cells: readonly (readonly Figures[])[];
}

/** One row's failure does not end the others'. */
export async function measureGoals(place: Place, names: readonly RowName[]): Promise<Goals> {
  const outcomes = names.map((name): Outcome => ({
    name,
    rounds: [],
    failure: null,
    isError: false,
  }));
  const cells: Figures[][] = [];
  for (let number = 1; number <= place.options.rounds; number += 1) {
    note(`round ${number} of ${place.options.rounds}`);
    const round = new Round(place);
    for (const outcome of outcomes) await measureRow(round, outcome);
    cells.push(round.cells);
  }
  return { outcomes, cells };
}

async function measureRow(round: Round, outcome: Outcome): Promise<void> {
  const row = rowsByName[outcome.name];
  const lack = row.lacks?.(round) ?? null;
  if (lack !== null) {
    outcome.failure = lack;
    return;
  }
  note(` ${outcome.name}`);
  try {
    outcome.rounds.push(await row.measure(round));
  } catch (error) {
    await endAll();
    const text = error instanceof Error ? error.message : String(error);
    note(`  failed: ${text}`);
    outcome.failure = text.split("\n", 1)[0] ?? text;
    outcome.isError = true;
  }
}

/** Every load on every server, in rounds: the table of the README. */
import { measureCell } from "./cell.ts";
import type { Figures } from "./figures.ts";
import { describeCell } from "./describe.ts";
import type { Load } from "./load.ts";
import type { Options } from "./options.ts";
import { note, type Tools } from "./tools.ts";

const loads: readonly Load[] = ([1, 64, 256] as const).flatMap((connections) => [
  { connections, kind: "random" } as const,
  { connections, kind: "rising" } as const,
]);

export async function measureAllLoads(
  tools: Tools,
  options: Options,
  folder: string,
): Promise<Figures[][]> {
  const wanted = options.quick
    ? loads.filter(({ connections, kind }) => connections === 256 && kind === "random")
    : loads;
  const rounds: Figures[][] = [];
  for (let number = 1; number <= options.rounds; number += 1) {
    note(`round ${number} of ${options.rounds}`);
    rounds.push(await measureRound(tools, options, wanted, folder));
  }
  return rounds;
}

/** The servers take turns under each load, so that what the machine does besides meets all alike. */
async function measureRound(
  tools: Tools,
  { only, seconds, quick, fsyncMs }: Options,
  wanted: readonly Load[],
  folder: string,
): Promise<Figures[]> {
  const round: Figures[] = [];
  for (const load of wanted) {
    for (const server of only) {
      const cell = {
        server,
        load,
        seconds,
        hasWarmUp: !quick,
        fsyncMs,
        stored: null,
        settles: false,
      };
      const figures = await measureCell(tools, cell, folder);
      round.push(figures);
      note(`  ${describeCell(figures)}`);
    }
  }
  return round;
}

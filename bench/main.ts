/** `bun run bench`: see bench/README.md. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Figures, measureCell } from "./cell.ts";
import type { Load } from "./load.ts";
import { describeMachine } from "./machine.ts";
import { type Options, readOptions, UsageError, usage } from "./options.ts";
import { killAll } from "./process.ts";
import { report, type Round } from "./report.ts";
import { note, readyTools, type Tools } from "./tools.ts";

const allLoads: readonly Load[] = ([1, 64, 256] as const).flatMap((connections) => [
  { connections, ids: "random" } as const,
  { connections, ids: "rising" } as const,
]);

async function main(): Promise<void> {
  const options = readOptions(process.argv.slice(2));
  if (options === null) {
    process.stdout.write(usage);
    return;
  }
  const folder = mkdtempSync(join(tmpdir(), "signalbox-bench-"));
  const cleanUp = (): void => {
    killAll();
    rmSync(folder, { recursive: true, force: true });
  };
  for (const [signal, code] of [
    ["SIGINT", 130],
    ["SIGTERM", 143],
  ] as const) {
    process.once(signal, () => {
      cleanUp();
      process.exit(code);
    });
  }
  try {
    await bench(options, folder);
  } finally {
    cleanUp();
  }
}

async function bench(options: Options, folder: string): Promise<void> {
  const { only, fsyncMs, rounds: roundCount, seconds } = options;
  const tools = await readyTools(only, fsyncMs > 0, folder);
  const machine = await describeMachine(folder);
  const loads = options.quick
    ? allLoads.filter(({ connections, ids }) => connections === 256 && ids === "random")
    : allLoads;
  const rounds: Round[] = [];
  for (let number = 1; number <= roundCount; number += 1) {
    note(`round ${number} of ${roundCount}`);
    rounds.push(await measureRound(tools, options, loads, folder));
  }
  const slow = fsyncMs === 0 ? "" : `; every fsync slowed down by ${fsyncMs} ms`;
  const heading = `${machine}${slow}. Medians of ${roundCount} × ${seconds} s.`;
  process.stdout.write(`\n${heading}\n\n${report(rounds, loads, only)}\n`);
  if (options.jsonFile !== null) {
    const raw = { measured_at: new Date().toISOString(), machine, options, rounds };
    await Bun.write(options.jsonFile, `${JSON.stringify(raw, null, 2)}\n`);
  }
}

/** The servers take turns under each load, so that what the machine does besides meets all alike. */
async function measureRound(
  tools: Tools,
  { only, seconds, fsyncMs }: Options,
  loads: readonly Load[],
  folder: string,
): Promise<Round> {
  const round: Figures[] = [];
  for (const load of loads) {
    for (const server of only) {
      const figures = await measureCell(tools, { server, load, seconds, fsyncMs }, folder);
      round.push(figures);
      note(
        `  ${load.connections} connections, ${load.ids} ids, ${server}: ${Math.round(figures.throughput_per_s)}/s, wrk at ${Math.round(figures.wrk_cpu_share * 100)} %`,
      );
    }
  }
  return round;
}

try {
  await main();
} catch (error) {
  const isUsage = error instanceof UsageError;
  note(error instanceof Error ? error.message : String(error));
  if (isUsage) note("See: bun run bench --help");
  process.exitCode = 1;
}

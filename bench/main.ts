/** `bun run bench`: see bench/README.md. */
import { chmodSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { measureAllLoads } from "./all-loads.ts";
import { goalReport } from "./goal-report.ts";
import { measureGoals } from "./goals.ts";
import { describeMachine } from "./machine.ts";
import { type Options, readOptions, usage } from "./options.ts";
import { killAll } from "./process.ts";
import { profile } from "./profile.ts";
import { figureTable, noiseNotes, ratioTable } from "./report.ts";
import { readyStored } from "./stored.ts";
import { missing, note, readyTools, type Tools } from "./tools.ts";
import { UsageError } from "./usage-error.ts";

/** PostgreSQL, which will not run as root, has to get through to its own folder. */
const FOLDER_MODE = 0o711;

async function main(): Promise<void> {
  const options = readOptions(process.argv.slice(2));
  if (options === null) {
    process.stdout.write(usage);
    return;
  }
  const folder = mkdtempSync(join(tmpdir(), "signalbox-bench-"));
  chmodSync(folder, FOLDER_MODE);
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
  const tools = await readyTools(folder);
  const machine = await describeMachine(folder);
  const { rounds, seconds, profileFolder, jsonFile } = options;
  const heading = `${machine}. Medians of ${rounds} × ${seconds} s.`;
  const raw = await (options.allLoads ? benchAllLoads : benchGoals)(
    tools,
    options,
    folder,
    heading,
  );
  const profiled =
    profileFolder === null ? [] : await profile(tools, { seconds, profileFolder, folder });
  if (jsonFile === null) return;
  const all = { measured_at: new Date().toISOString(), machine, options, ...raw, profiled };
  await Bun.write(jsonFile, `${JSON.stringify(all, null, 2)}\n`);
}

async function benchGoals(tools: Tools, options: Options, folder: string, heading: string) {
  const keepFolder = options.keepFolder ?? join(folder, "stored");
  const stored = options.stored === 0 ? null : await readyStored(options.stored, keepFolder);
  const goals = await measureGoals({ tools, options, folder, stored }, options.rows);
  if (goals.outcomes.some(({ isError }) => isError)) process.exitCode = 1;
  const measured = goals.cells.some((cells) => cells.length > 0)
    ? [figureTable(goals.cells), noiseNotes(goals.cells)]
    : [];
  print([heading, goalReport(goals.outcomes), ...measured]);
  return goals;
}

async function benchAllLoads(tools: Tools, options: Options, folder: string, heading: string) {
  const { fsyncMs, only } = options;
  if (fsyncMs > 0 && tools.strace === null) throw new UsageError(missing("strace", "strace"));
  const rounds = await measureAllLoads(tools, options, folder);
  const slow = fsyncMs === 0 ? "" : ` Every fsync slowed down by ${fsyncMs} ms.`;
  const ratios = only.includes("signalbox") && only.length > 1 ? [ratioTable(rounds)] : [];
  print([heading + slow, figureTable(rounds), ...ratios, noiseNotes(rounds)]);
  return { rounds };
}

function print(parts: readonly string[]): void {
  process.stdout.write(`\n${parts.join("\n\n")}\n`);
}

try {
  await main();
} catch (error) {
  const isUsage = error instanceof UsageError;
  note(error instanceof Error ? error.message : String(error));
  if (isUsage) note("See: bun run bench --help");
  process.exitCode = 1;
}

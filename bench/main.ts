/** `bun run bench`: see bench/README.md. */
import { chmodSync, mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { goalReport } from "./goal-report.ts";
import { measureGoals } from "./goals.ts";
import { type IdKind, idKinds } from "./load.ts";
import { describeMachine } from "./machine.ts";
import { type Options, readOptions, usage } from "./options.ts";
import { killAll } from "./process.ts";
import { profile } from "./profile.ts";
import { figureTable, noiseNotes } from "./report.ts";
import type { RowName } from "./rows/names.ts";
import { readyStored } from "./stored.ts";
import { note, readyTools } from "./tools.ts";
import { UsageError } from "./usage-error.ts";

/** PostgreSQL does not run as root, and its user must get through to its own folder. */
const FOLDER_MODE = 0o711;

/** The rows that need no database with such ids: filling one with 100 million random ids takes hours. */
const withoutStored: Record<IdKind, ReadonlySet<RowName>> = {
  v7: new Set(["scale"]),
  v4: new Set(["scale", "v7", "feed"]),
};

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
  const machine = describeMachine(folder);
  const { rounds, seconds, profileFolder, jsonFile } = options;
  const keepFolder = resolve(options.keepFolder ?? join(folder, "stored"));
  mkdirSync(keepFolder, { recursive: true, mode: FOLDER_MODE });
  const kinds = idKinds.filter(
    (kind) => !options.rows.every((row) => withoutStored[kind].has(row)),
  );
  const stored = options.stored === 0 ? null : await readyStored(options.stored, kinds, keepFolder);
  const place = { tools, options, folder, keepFolder, stored };
  const { outcomes, cells } = await measureGoals(place, options.rows);
  if (outcomes.some(({ isError }) => isError)) process.exitCode = 1;
  const heading = `${machine}. Medians of ${rounds} × ${seconds} s.`;
  const measured = cells.some(({ length }) => length > 0)
    ? [figureTable(cells), noiseNotes(cells)]
    : [];
  process.stdout.write(`\n${[heading, goalReport(outcomes), ...measured].join("\n\n")}\n`);
  const profiled =
    profileFolder === null ? [] : await profile(tools, { seconds, profileFolder, folder });
  if (jsonFile === null) return;
  const all = {
    measured_at: new Date().toISOString(),
    machine,
    options,
    outcomes,
    cells,
    profiled,
  };
  await Bun.write(jsonFile, `${JSON.stringify(all, null, 2)}\n`);
}

try {
  await main();
} catch (error) {
  const isUsage = error instanceof UsageError;
  note(error instanceof Error ? error.message : String(error));
  if (isUsage) note("See: bun run bench --help");
  process.exitCode = 1;
}

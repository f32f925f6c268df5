/** The options of the benchmark. */
import { parseArgs } from "node:util";
import { type RowName, rowNames } from "./rows/names.ts";
import { UsageError } from "./usage-error.ts";

export interface Options {
  readonly rounds: number;
  /** Measured time of one cell (a server under a load). */
  readonly seconds: number;
  readonly quick: boolean;
  /** Rows of the table of goals. */
  readonly rows: readonly RowName[];
  /** Signals in the filled databases; 0: none are made. */
  readonly stored: number;
  /** Where the filled databases are kept; null: they are deleted at the end. */
  readonly keepFolder: string | null;
  /** Where profiles are written; null: none are made. */
  readonly profileFolder: string | null;
  /** Where the raw figures are written; null: nowhere. */
  readonly jsonFile: string | null;
}

export const usage = `Measures Signalbox beside a bare Bun.serve and PostgreSQL, on this machine, in one run, and says
which of its goals it meets.

Usage: bun run bench [options]

  --rounds N        rounds over all rows; medians are printed (default 3)
  --seconds N       measured time of each server under a load (default 4)
  --rows LIST       of ${rowNames.join(",")} (default: all)
  --stored N        also measure on databases with N stored signals (rows v7, v4, postgresql, scale, feed, start, disk)
  --keep DIR        keep those databases in DIR for later runs
  --quick           one round of 1 s without warm-up: does it work at all?
  --profile DIR     also write CPU profiles of Signalbox under load to DIR
  --json FILE       write the raw figures to FILE
  --help            print this

Examples:
  $ bun run bench --quick
  $ bun run bench --stored 10000000 --keep /var/tmp/signalbox-bench
  $ bun run bench --rows new,memory --rounds 1 --seconds 600
  $ TMPDIR=/mnt/disk bun run bench     # databases on another disk
`;

/** Returns null for --help. Throws {@link UsageError}. */
export function readOptions(args: string[]): Options | null {
  const values = parse(args);
  if (values.help) return null;
  return {
    rounds: values.quick ? 1 : readCount("--rounds", values.rounds, 1, 100),
    seconds: values.quick ? 1 : readCount("--seconds", values.seconds, 1, 7_200),
    quick: values.quick,
    rows: readRows(values.rows ?? rowNames.join(",")),
    stored: readCount("--stored", values.stored, 0, 1_000_000_000),
    keepFolder: values.keep ?? null,
    profileFolder: values.profile ?? null,
    jsonFile: values.json ?? null,
  };
}

function parse(args: string[]) {
  try {
    return parseArgs({
      args,
      options: {
        rounds: { type: "string", default: "3" },
        seconds: { type: "string", default: "4" },
        quick: { type: "boolean", default: false },
        rows: { type: "string" },
        stored: { type: "string", default: "0" },
        keep: { type: "string" },
        profile: { type: "string" },
        json: { type: "string" },
        help: { type: "boolean", short: "h", default: false },
      },
    }).values;
  } catch (error) {
    throw new UsageError(error instanceof Error ? error.message : String(error));
  }
}

function readCount(flag: string, text: string, min: number, max: number): number {
  const count = /^\d{1,10}$/.test(text) ? Number(text) : Number.NaN;
  if (count >= min && count <= max) return count;
  throw new UsageError(`${flag} takes a whole number from ${min} to ${max}.`);
}

/** In the order of the table, whatever the order in the list. */
function readRows(list: string): RowName[] {
  const asked = list.split(",").map((name) => name.trim());
  const unknown = asked.find((name) => !rowNames.some((row) => row === name));
  if (unknown !== undefined) {
    throw new UsageError(`--rows knows ${rowNames.join(", ")}, and not "${unknown}".`);
  }
  return rowNames.filter((name) => asked.includes(name));
}

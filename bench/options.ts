/** What the benchmark can be told. */
import { parseArgs } from "node:util";
import { type RowName, rowNames } from "./rows/names.ts";
import { type ServerName, serverNames } from "./servers.ts";
import { UsageError } from "./usage-error.ts";

export interface Options {
  readonly rounds: number;
  /** Measured time of one cell (a server under a load). */
  readonly seconds: number;
  readonly quick: boolean;
  /** Rows of the table of goals. */
  readonly rows: readonly RowName[];
  /** The one arrival rate of row "open", a second; null: its own. */
  readonly ratePerS: number | null;
  /** Signals of the database that is not new; 0: none is made. */
  readonly stored: number;
  /** Where that database is kept; null: not at all. */
  readonly keepFolder: string | null;
  /** Every load on every server instead of the goals. */
  readonly allLoads: boolean;
  readonly only: readonly ServerName[];
  /** Extra time of every fsync: of the row "slow-disk", or of all loads, where 0 leaves the disk as it is. */
  readonly fsyncMs: number;
  /** Where profiles are written to; null: none is made. */
  readonly profileFolder: string | null;
  /** Where the raw figures go. */
  readonly jsonFile: string | null;
}

export const usage = `Measures Signalbox beside a bare Bun.serve and other peers, on this machine, in one run, and says
which of its goals it meets.

Usage: bun run bench [options]

  --rounds N        rounds over all rows; medians are printed (default 3)
  --seconds N       measured time of each server under a load (default 4)
  --rows LIST       of ${rowNames.slice(0, 8).join(",")},
                    ${rowNames.slice(8).join(",")} (default: all)
  --rate N          row "open" at N signals a second alone
  --stored N        measure on a database of N stored signals, too (rows "stored", "start", "disk")
  --keep DIR        keep that database in DIR, for later runs
  --fsync-ms N      how slow row "slow-disk" makes every fsync (default 5; needs strace)
  --quick           one round of 1 s: does it work at all?
  --all-loads       instead of the goals: 1, 64 and 256 connections, on each server
  --only LIST       with --all-loads: of ${serverNames.join(",")} (default: all)
  --profile DIR     write CPU profiles of Signalbox under load to DIR, too
  --json FILE       write the raw figures to FILE
  --help            print this

Examples:
  $ bun run bench --quick
  $ bun run bench --stored 10000000 --keep /var/tmp/signalbox-bench
  $ bun run bench --rows open --rounds 1 --seconds 600
  $ bun run bench --rows open,memory --rate 2000 --rounds 1 --seconds 3600
  $ bun run bench --all-loads --only signalbox,bare --rounds 1
  $ bun run bench --all-loads --fsync-ms 5 --json slow-disk.json
  $ TMPDIR=/mnt/disk bun run bench     # databases on another disk
`;

/** Null asks for help. Throws {@link UsageError}. */
export function readOptions(args: string[]): Options | null {
  const values = parse(args);
  if (values.help) return null;
  const allLoads = values["all-loads"];
  if (values.only !== undefined && !allLoads) {
    throw new UsageError("--only chooses servers of --all-loads; --rows chooses goals.");
  }
  if (values.rows !== undefined && allLoads) {
    throw new UsageError("--rows chooses goals, which --all-loads does not measure.");
  }
  return {
    rounds: values.quick ? 1 : readCount("--rounds", values.rounds, 1, 100),
    seconds: values.quick ? 1 : readCount("--seconds", values.seconds, 1, 7_200),
    quick: values.quick,
    rows: readNames("--rows", values.rows ?? rowNames.join(","), rowNames),
    ratePerS: values.rate === undefined ? null : readCount("--rate", values.rate, 1, 100_000),
    stored: readCount("--stored", values.stored, 0, 1_000_000_000),
    keepFolder: values.keep ?? null,
    allLoads,
    only: readNames("--only", values.only ?? serverNames.join(","), serverNames),
    fsyncMs: readCount("--fsync-ms", values["fsync-ms"] ?? (allLoads ? "0" : "5"), 0, 1_000),
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
        rate: { type: "string" },
        stored: { type: "string", default: "0" },
        keep: { type: "string" },
        "all-loads": { type: "boolean", default: false },
        only: { type: "string" },
        "fsync-ms": { type: "string" },
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

/** In the order of `known`, whatever the order in the list. */
function readNames<Name extends string>(
  flag: string,
  list: string,
  known: readonly Name[],
): Name[] {
  const asked = list.split(",").map((name) => name.trim());
  const unknown = asked.find((name) => !known.some((one) => one === name));
  if (unknown !== undefined) {
    throw new UsageError(`${flag} knows ${known.join(", ")}, and not "${unknown}".`);
  }
  return known.filter((name) => asked.includes(name));
}

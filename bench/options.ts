/** What the benchmark can be told. */
import { parseArgs } from "node:util";
import { type ServerName, serverNames } from "./servers.ts";

export interface Options {
  readonly rounds: number;
  /** Measured time of one cell (a server under a load). */
  readonly seconds: number;
  readonly quick: boolean;
  readonly only: readonly ServerName[];
  /** Extra time of every fsync, for the servers that store; 0 leaves the disk as it is. */
  readonly fsyncMs: number;
  /** Where the raw figures go. */
  readonly jsonFile: string | null;
}

export class UsageError extends Error {}

export const usage = `Measures Signalbox beside a bare Bun.serve and a Fastify peer, on this machine, in one run.

Usage: bun run bench [options]

  --rounds N        rounds over all cells; medians are printed (default 3)
  --seconds N       measured time of each cell (default 4)
  --quick           one round of 1 s, 256 connections and random ids only
  --only LIST       of ${serverNames.join(",")} (default: all)
  --fsync-ms N      slow every fsync down by N ms, to see another disk (needs strace)
  --json FILE       write the raw figures to FILE
  --help            print this

Examples:
  $ bun run bench --quick
  $ bun run bench --only signalbox,bare --rounds 1
  $ bun run bench --fsync-ms 5 --json slow-disk.json
  $ TMPDIR=/mnt/disk bun run bench     # databases on another disk
`;

/** Null asks for help. Throws {@link UsageError}. */
export function readOptions(args: string[]): Options | null {
  const values = parse(args);
  if (values.help) return null;
  return {
    rounds: values.quick ? 1 : readCount("--rounds", values.rounds, 1, 100),
    seconds: values.quick ? 1 : readCount("--seconds", values.seconds, 1, 60),
    quick: values.quick,
    only: readNames(values.only),
    fsyncMs: readCount("--fsync-ms", values["fsync-ms"], 0, 1_000),
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
        only: { type: "string", default: serverNames.join(",") },
        "fsync-ms": { type: "string", default: "0" },
        json: { type: "string" },
        help: { type: "boolean", short: "h", default: false },
      },
    }).values;
  } catch (error) {
    throw new UsageError(error instanceof Error ? error.message : String(error));
  }
}

function readCount(flag: string, text: string, min: number, max: number): number {
  const count = /^\d{1,6}$/.test(text) ? Number(text) : Number.NaN;
  if (count >= min && count <= max) return count;
  throw new UsageError(`${flag} takes a whole number from ${min} to ${max}.`);
}

/** In the order of {@link serverNames}, whatever the order in the list. */
function readNames(list: string): ServerName[] {
  const asked = list.split(",").map((name) => name.trim());
  const unknown = asked.find((name) => !serverNames.some((known) => known === name));
  if (unknown !== undefined) {
    throw new UsageError(`--only knows ${serverNames.join(", ")}, and not "${unknown}".`);
  }
  return serverNames.filter((name) => asked.includes(name));
}

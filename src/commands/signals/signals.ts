/** `signalbox signals …`: read the stored signals. Some of its commands have files of their own. */
import { Argument, Option } from "commander";
import { NotFoundError } from "../../lib/errors.ts";
import { escapeHidden, showHidden } from "../../lib/text/hidden.ts";
import { prettyJson } from "../../domain/signal/pretty-json.ts";
import { readChunks } from "../../domain/signal/chunks.ts";
import type { StoredSignal } from "../../domain/signal/stored-signal.ts";
import { withStorage } from "../../store/open.ts";
import { type DataOptions, defineCommand, defineGroup } from "../../cli/define.ts";
import { limitOption } from "../../cli/options.ts";
import { printData, printNote } from "../../cli/print.ts";
import { exportCommand } from "./export.ts";
import {
  filterOptions,
  type FilterOptions,
  oneDeskOption,
  TIMES_NOTE,
  toChoice,
  toDeskId,
} from "./options.ts";
import { CHUNK, ndjsonPrinter, tablePrinter } from "./output.ts";
import { rejectsCommand } from "./rejects.ts";
import { tailCommand } from "./tail.ts";

const listCommand = defineCommand({
  name: "list",
  description: "list signals, newest first",
  options: [
    ...filterOptions(),
    limitOption("maximum number of signals", 50),
    new Option("--json", "print NDJSON: one JSON object per line"),
  ],
  adds: "data",
  notes: TIMES_NOTE,
  examples: [
    "signalbox signals list",
    "signalbox signals list --desk alpha --symbol BTC/USDT --side open --since 2h",
    "signalbox signals list --limit 1000 --json | jq -r .id",
  ],
  run: async (options: FilterOptions & { limit: number }) => {
    const print = options.json ? ndjsonPrinter : tablePrinter(options.desk !== undefined);
    let found = 0;
    await withStorage(options.data, async ({ registry, signals }) => {
      const choice = await toChoice(registry, options);
      const query = { ...choice, order: "newest", limit: options.limit } as const;
      for await (const chunk of readChunks(signals, query, CHUNK)) {
        print(chunk);
        found += chunk.length;
      }
    });
    if (found === 0 && !options.json) printNote("No signals found.");
  },
});

const showCommand = defineCommand({
  name: "show",
  description: "show everything about a signal",
  arguments: [new Argument("<id>", "the signal's id or client_signal_id")],
  options: [oneDeskOption(), new Option("--json", "print NDJSON: one JSON object per line")],
  adds: "data",
  notes: `
Desks may use the same client_signal_id: each signal with it is shown, unless you name the desk.`,
  examples: [
    "signalbox signals show 01K5QZ8F3V9X2M7T4B6N1C0D8E",
    "signalbox signals show my-first-signal --desk alpha --json | jq .metadata",
  ],
  run: async ({ desk, json, data }: DataOptions & { desk?: string }, id: string) => {
    const found = await withStorage(data, async ({ registry, signals }) =>
      signals.find(await toDeskId(registry, desk), id),
    );
    if (found.length === 0) {
      const where = desk === undefined ? "There is no signal" : `Desk "${desk}" has no signal`;
      // Does not repeat what was typed: it may be a key, pasted by mistake.
      throw new NotFoundError(
        `${where} with this id or client_signal_id: list the signals`,
        "signals list",
      );
    }
    if (json) ndjsonPrinter(found);
    else printData(found.map(describe).join("\n\n"));
    if (found.length > 1)
      printNote(`${found.length} signals have this id: name one's desk with --desk.`);
  },
});

/** One field per line, then the metadata. */
function describe(signal: StoredSignal): string {
  const { key_id, key_label, key_last4, metadata, ...others } = signal;
  const label = key_label === null ? "" : `${key_label} `;
  const fields = {
    ...others,
    received_at: momentOf(signal.received_at),
    signal_time: signal.signal_time === null ? null : momentOf(signal.signal_time),
    key: `${label}(…${key_last4}), ${key_id}`,
    metadata: metadata === null ? null : "",
  };
  const width = Math.max(...Object.keys(fields).map((name) => name.length));
  const lines = Object.entries(fields).map(([name, value]) =>
    `${name.padEnd(width)}  ${showHidden(String(value ?? "-"))}`.trimEnd(),
  );
  if (metadata === null) return lines.join("\n");
  return [...lines, escapeHidden(prettyJson(metadata))].join("\n");
}

/** Dates end in the year 275760, a `signal_time` later. */
const DATE_MS_MAX = 8_640_000_000_000_000;

function momentOf(ms: number): string {
  return ms > DATE_MS_MAX ? String(ms) : `${new Date(ms).toISOString()} (${ms})`;
}

export const signalsCommand = defineGroup({
  name: "signals",
  description: "list, show, follow and export the stored signals, and show what was rejected",
  commands: [listCommand, showCommand, tailCommand, exportCommand, rejectsCommand],
  examples: [
    "signalbox signals list --desk alpha --since 2h",
    "signalbox signals show 01K5QZ8F3V9X2M7T4B6N1C0D8E",
    "signalbox signals tail --follow",
    "signalbox signals export --format csv --output signals.csv",
    "signalbox signals rejects --desk alpha",
  ],
});

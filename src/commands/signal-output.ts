/** How `signalbox signals …` prints signals: as rows of a table, or as NDJSON. */
import { escapeControls } from "../domain/shell.ts";
import { fileLines } from "../domain/signal-file.ts";
import type { StoredSignal } from "../domain/stored-signal.ts";
import { writeToStdout } from "../output.ts";
import { type Columns, formatTime, streamTable } from "./print.ts";

/** A chunk that is read, and printed, at once. */
export const CHUNK = { rows: 1_000, metadataUnits: 1024 * 1024 };

/** Prints signals below those that it printed before. */
type SignalPrinter = (signals: readonly StoredSignal[]) => void;

/** `isOneDesk`: the table needs no column for the desk. */
export function tablePrinter(isOneDesk: boolean): SignalPrinter {
  const { DESK: _, ...others } = columns;
  return streamTable(isOneDesk ? others : columns);
}

export const ndjsonPrinter: SignalPrinter = (signals) => {
  if (signals.length > 0) writeLines(signals.map(fileLines.ndjson).join(""));
};

/** Terminals obey control characters. In JSON, those that are not escaped yet are within strings. */
export function writeLines(lines: string): void {
  writeToStdout(process.stdout.isTTY ? lines.split("\n").map(escapeControls).join("\n") : lines);
}

const columns = {
  "RECEIVED (UTC)": {
    cell: ({ received_at }) => formatTime(received_at).slice(0, -1),
    // Without the year.
    short: ({ received_at }) => formatTime(received_at).slice(5, -1),
    whole: true,
  },
  ID: { cell: ({ id }) => id, whole: true },
  DESK: ({ desk }) => desk,
  SYMBOL: ({ symbol }) => symbol,
  SIDE: ({ side, direction }) => (direction === null ? side : `${side} ${direction}`),
  PRICE: { cell: ({ price }) => String(price ?? "-"), number: true, leaveOut: 5 },
  QUANTITY: { cell: ({ quantity }) => String(quantity ?? "-"), number: true, leaveOut: 4 },
  SOURCE: { cell: ({ source }) => source, leaveOut: 3 },
  TYPE: { cell: ({ type }) => type, leaveOut: 2 },
  KEY: { cell: ({ key_label, key_last4 }) => key_label ?? `…${key_last4}`, leaveOut: 1 },
} satisfies Columns<StoredSignal>;

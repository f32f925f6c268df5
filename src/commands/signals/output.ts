/** How `signalbox signals …` prints signals: as rows of a table, or as NDJSON. */
import { escapeHidden } from "../../lib/text/hidden.ts";
import { fileLines } from "../../domain/signal/file.ts";
import type { StoredSignal } from "../../domain/signal/stored-signal.ts";
import { writeToStdout } from "../../lib/output.ts";
import { type Columns, formatTime, streamTable } from "../../cli/print.ts";

/** A chunk that is read, and printed, at once. */
export const CHUNK = { rows: 1_000, metadataUnits: 1024 * 1024 };

/** `isOneDesk`: the table needs no column for the desk. */
export function tablePrinter(isOneDesk: boolean): (signals: readonly StoredSignal[]) => void {
  const { DESK: _, ...others } = columns;
  return streamTable(isOneDesk ? others : columns);
}

export function ndjsonPrinter(signals: readonly StoredSignal[]): void {
  if (signals.length > 0) writeLines(signals.map(fileLines.ndjson).join(""));
}

/** People read a terminal; programs get each text as it was sent. */
export function writeLines(lines: string): void {
  writeToStdout(process.stdout.isTTY ? escapeHidden(lines) : lines);
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

/** Signals as lines of a file: CSV (RFC 4180) for spreadsheets, NDJSON for programs. */
import { escapeHidden, showHidden } from "../../lib/text/hidden.ts";
import { fieldNames } from "./signal.ts";
import type { StoredSignal } from "./stored-signal.ts";

export const fileFormats = ["csv", "ndjson"] as const;
export type FileFormat = (typeof fileFormats)[number];

type Cell = string | number | null;

const columns: readonly (readonly [name: string, read: (signal: StoredSignal) => Cell])[] = [
  ["id", (signal) => signal.id],
  ["desk", (signal) => signal.desk],
  ["received_at", (signal) => signal.received_at],
  ["received_at_utc", (signal) => inUtc(signal.received_at)],
  ...fieldNames
    .filter((name) => name !== "metadata")
    .map((name) => [name, (signal: StoredSignal) => signal[name]] as const),
  ["signal_time_utc", ({ signal_time }) => (signal_time === null ? null : inUtc(signal_time))],
  ["key_id", (signal) => signal.key_id],
  ["key_label", (signal) => signal.key_label],
  ["metadata", ({ metadata }) => (metadata === null ? null : escapeHidden(oneLine(metadata)))],
];

/** The beginning of a file. */
export const fileHeads: Readonly<Record<FileFormat, string>> = {
  csv: `${columns.map(([name]) => name).join(",")}\r\n`,
  ndjson: "",
};

/** A signal's line, with its line break. */
export const fileLines: Readonly<Record<FileFormat, (signal: StoredSignal) => string>> = {
  csv: (signal) => `${columns.map(([, read]) => csvCell(read(signal))).join(",")}\r\n`,
  ndjson: ndjsonLine,
};

/** Null for a bot's time that is later than any date. */
function inUtc(ms: number): string | null {
  const date = new Date(ms);
  return Number.isNaN(date.getTime()) ? null : date.toISOString();
}

function csvCell(value: Cell): string {
  if (value === null) return "";
  if (typeof value === "number") return String(value);
  return quoted(defused(showHidden(value)));
}

/**
 * Puts an apostrophe before what a spreadsheet would take for a formula: at the start of the field, and
 * after a semicolon within it, because a spreadsheet may split there (OWASP, "CSV Injection"). Tabs and
 * line breaks are not in it any more. Covers the full-width forms of the signs, which some spreadsheets treat alike.
 */
function defused(text: string): string {
  return text.replace(/^(?=[=+\-@＝＋－＠])/, "'").replaceAll(/(?<=;)(?="*[=+\-@＝＋－＠])/g, "'");
}

function quoted(text: string): string {
  return /[",\r\n']/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

/** Uses the names of the API. Metadata is copied as text, because a number in it may exceed a double. */
function ndjsonLine(signal: StoredSignal): string {
  const metadata = signal.metadata === null ? "null" : oneLine(signal.metadata);
  const rest = JSON.stringify({ ...signal, key_last4: undefined, metadata: undefined });
  return `${rest.slice(0, -1)},"metadata":${metadata}}\n`;
}

/** Line breaks and tabs in JSON are between its tokens only: within strings they are escaped. */
function oneLine(json: string): string {
  return json.replaceAll(/[\r\n\t]/g, " ");
}

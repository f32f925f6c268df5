/** What commands print: data to stdout, notes to stderr. */
import { fstatSync, statSync } from "node:fs";
import { UserError } from "../lib/errors.ts";
import { escapeHidden, showHidden } from "../lib/text/hidden.ts";
import { DAY_MS } from "../lib/text/time.ts";
import { formatTime } from "../lib/text/words.ts";
import { OutputError, writeToStderr, writeToStdout } from "../lib/output.ts";

export { count, formatTime, plural } from "../lib/text/words.ts";

export function printData(text: string): void {
  writeToStdout(`${text}\n`);
}

export function printJson(value: unknown): void {
  printData(escapeHidden(JSON.stringify(value, null, 2)));
}

/**
 * Refuses to make what nobody would see: stdout is /dev/null, which Bun also opens in the place of a closed
 * stdout. Throws {@link UserError}.
 */
export function requireReader(what: "key" | "link" | "secret"): void {
  const { rdev } = fstatSync(1);
  if (rdev === 0 || rdev !== statSync("/dev/null", { throwIfNoEntry: false })?.rdev) return;
  throw new UserError(
    `The ${what} would be lost, because stdout is closed or /dev/null, and nothing was changed: print it on a terminal, to a file or to a pipe.`,
  );
}

/** Prints what a command has changed. */
export function printChanged(value: unknown): void {
  try {
    printJson(value);
  } catch (error) {
    if (!(error instanceof OutputError)) throw error;
    throw new OutputError(error.code, "Changes made by the command are kept.");
  }
}

/**
 * Prints a new key or link, alone or as JSON. Throws {@link UserError} with the advice of `unseen` if it
 * cannot be written, even if the reader has gone: it can never be shown again.
 */
export function printSecret(
  output: string | object,
  unseen: { readonly message: string; readonly next: string },
): void {
  try {
    if (typeof output === "string") printData(output);
    else printJson(output);
  } catch (error) {
    if (!(error instanceof OutputError)) throw error;
    throw new UserError(
      `The output could not be written (${error.code}). ${unseen.message}`,
      unseen.next,
    );
  }
}

export function printNote(text: string): void {
  writeToStderr(`${showHidden(text)}\n`);
}

type Cell<Item> = (record: Item) => string;

/** What a terminal that is too narrow for the table does with a column. */
interface Column<Item> {
  readonly cell: Cell<Item>;
  /** Replaces `cell` first. */
  readonly short?: Cell<Item>;
  /** Then columns with this are left out, 1 first. The others stay. */
  readonly leaveOut?: number | undefined;
  /** Its texts are never cut, because people copy them. */
  readonly whole?: boolean;
  /** Aligned to the right. */
  readonly number?: boolean;
}

/** Heading → column. */
export type Columns<Item> = Readonly<Record<string, Cell<Item> | Column<Item>>>;

/** Times farther from now are ambiguous without a year. */
const WITHOUT_YEAR_MS = 183 * DAY_MS;

/** A time, or a dash. On a narrow terminal without the year and seconds, or only the date. */
export function timeColumn<Item>(
  read: (record: Item) => number | null,
  leaveOut?: number,
): Column<Item> {
  return {
    cell: (record) => formatTime(read(record)),
    short: (record) => shortTime(read(record)),
    leaveOut,
  };
}

function shortTime(time: number | null): string {
  const whole = formatTime(time);
  const isNear = time !== null && Math.abs(time - Date.now()) < WITHOUT_YEAR_MS;
  return isNear
    ? `${whole.slice("2026-".length, -":00Z".length)}Z`
    : whole.slice(0, "2026-11-22".length);
}

interface ListFormat<Item> {
  readonly json: true | undefined;
  /** The note for people if there are none. */
  readonly none: string;
  readonly columns: Columns<Item>;
}

/** Prints records as JSON or as a table. */
export function printList<Item>(
  records: readonly Item[],
  { json, none, columns }: ListFormat<Item>,
): void {
  if (json) printJson(records);
  else if (records.length === 0) printNote(none);
  else printTable(records, columns);
}

export function printTable<Item>(records: readonly Item[], columns: Columns<Item>): void {
  streamTable(columns)(records);
}

/** Returns a function that prints records below those that it printed before, in the same columns. */
export function streamTable<Item>(columns: Columns<Item>): (records: readonly Item[]) => void {
  let before: readonly Item[] = [];
  let headings: string | null = null;
  return (records) => {
    if (records.length === 0) return;
    const { lines, leftOut } = layOut([...before, ...records], columns, widthOfStdout());
    const [first = "", ...rows] = lines;
    const isFirst = headings === null;
    // On a terminal, again when the columns have moved. A program gets them once.
    if (isFirst || (process.stdout.isTTY && headings !== first)) printData(first);
    headings = first;
    printData(rows.slice(before.length).join("\n"));
    if (isFirst && leftOut.length > 0) {
      printNote(
        `Left out: ${leftOut.join(", ")}. A wider terminal shows all columns; so does a pipe.`,
      );
    }
    before = [...before, ...records].slice(-ROWS_REMEMBERED);
  };
}

/** Rows whose width the next ones get, so that columns seldom move. */
const ROWS_REMEMBERED = 100;

/** Pipes and files have no width: what a program reads never depends on a terminal. */
function widthOfStdout(): number {
  return process.stdout.isTTY ? process.stdout.columns || 80 : Infinity;
}

const GAP = "  ";
/** Texts are cut to this before a column is left out. */
const TEXT_KEPT = 16;
/** Narrower cells are not cut. */
const CUT_MIN = 8;

/** The lines of a table that fits the width, and the headings of the columns that were left out. */
export function layOut<Item>(
  records: readonly Item[],
  columns: Columns<Item>,
  width: number,
): { readonly lines: string[]; readonly leftOut: string[] } {
  const all = Object.entries(columns).map(([heading, column]) => {
    const {
      cell,
      short = cell,
      leaveOut = Infinity,
      whole = false,
      number = false,
    }: Column<Item> = typeof column === "function" ? { cell: column } : column;
    const cellsOf = (read: Cell<Item>) => [heading, ...records.map(read).map(showHidden)];
    const [long, shorter] = [cellsOf(cell), cellsOf(short)];
    return { heading, leaveOut, whole, number, long, shorter, needed: widthOf(shorter) };
  });
  if (totalWidth(all.map(({ long }) => widthOf(long))) <= width) {
    return { lines: join(all.map(({ long, number }) => ({ cells: long, number }))), leftOut: [] };
  }
  const kept = [...all];
  const leftOut: string[] = [];
  const widthsAt = (limit: number) =>
    kept.map(({ whole, needed }) => (whole ? needed : Math.min(needed, limit)));
  const candidates = all.filter(({ leaveOut }) => leaveOut < Infinity);
  for (const next of candidates.toSorted((one, other) => one.leaveOut - other.leaveOut)) {
    if (totalWidth(widthsAt(TEXT_KEPT)) <= width) break;
    kept.splice(kept.indexOf(next), 1);
    leftOut.push(next.heading);
  }
  let limit = width;
  while (limit > CUT_MIN && totalWidth(widthsAt(limit)) > width) limit -= 1;
  const cut = kept.map(({ shorter, whole, number }) => ({
    cells: whole ? shorter : shorter.map((cell) => cutTo(cell, limit)),
    number,
  }));
  return { lines: join(cut), leftOut };
}

function totalWidth(widths: readonly number[]): number {
  return widths.reduce((sum, width) => sum + width, GAP.length * (widths.length - 1));
}

function widthOf(cells: readonly string[]): number {
  return Math.max(...cells.map((cell) => Bun.stringWidth(cell)));
}

/** The last character of a text that is cut is an ellipsis. */
function cutTo(cell: string, width: number): string {
  if (Bun.stringWidth(cell) <= width) return cell;
  let cut = "";
  for (const { segment } of new Intl.Segmenter().segment(cell)) {
    if (Bun.stringWidth(cut + segment) >= width) break;
    cut += segment;
  }
  return `${cut}…`;
}

/** Lines of columns, each as wide as its widest cell. */
function join(
  columns: readonly { readonly cells: readonly string[]; readonly number: boolean }[],
): string[] {
  const padded = columns.map(({ cells, number }) => {
    const width = widthOf(cells);
    return cells.map((cell) => {
      const padding = " ".repeat(width - Bun.stringWidth(cell));
      return number ? padding + cell : cell + padding;
    });
  });
  return (padded[0] ?? []).map((_, line) =>
    padded
      .map((cells) => cells[line])
      .join(GAP)
      .trimEnd(),
  );
}

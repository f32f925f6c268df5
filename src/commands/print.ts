/** What commands print: data to stdout, notes to stderr. */
import { UserError } from "../domain/errors.ts";
import { escapeControls } from "../domain/shell.ts";
import { OutputError, writeToStderr, writeToStdout } from "../output.ts";

export function printData(text: string): void {
  writeToStdout(`${text}\n`);
}

export function printJson(value: unknown): void {
  // JSON escapes only control characters below U+0020, and its own line breaks must stay.
  printData(JSON.stringify(value, null, 2).split("\n").map(escapeControls).join("\n"));
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
  writeToStderr(`${escapeControls(text)}\n`);
}

/** Prints records as JSON or as a table; `none` is the note for people if there are none. */
export function printList<Item>(
  records: readonly Item[],
  {
    json,
    none,
    columns,
  }: {
    readonly json: true | undefined;
    readonly none: string;
    /** Heading → cell. */
    readonly columns: Readonly<Record<string, (record: Item) => string>>;
  },
): void {
  if (json) printJson(records);
  else if (records.length === 0) printNote(none);
  else {
    const rows = records.map((record) => Object.values(columns).map((cell) => cell(record)));
    printTable([Object.keys(columns), ...rows]);
  }
}

/** Every column is as wide as its widest cell. */
function printTable(table: readonly (readonly string[])[]): void {
  const lines = table.map((row) => row.map(escapeControls));
  const widths = lines[0]?.map((_, column) =>
    Math.max(...lines.map((line) => Bun.stringWidth(line[column] ?? ""))),
  );
  for (const line of lines) {
    const cells = line.map(
      (cell, column) => cell + " ".repeat((widths?.[column] ?? 0) - Bun.stringWidth(cell)),
    );
    printData(cells.join("  ").trimEnd());
  }
}

/** Formats epoch milliseconds as UTC to the second, and null as a dash. */
export function formatTime(time: number | null): string {
  return time === null ? "-" : `${new Date(time).toISOString().slice(0, 19).replace("T", " ")}Z`;
}

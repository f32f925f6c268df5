/** Output: data to stdout, commentary to stderr. */
import { UserError } from "../domain/errors.ts";
import { OutputError, writeToStderr, writeToStdout } from "../output.ts";

export function printData(text: string): void {
  writeToStdout(`${text}\n`);
}

export function printJson(value: unknown): void {
  printData(JSON.stringify(value, null, 2));
}

/**
 * Prints a new key or link, alone or as JSON. Throws {@link UserError} if it cannot be written, even to a
 * reader that has gone: nobody can ever see it again. `unseen`: what to do then, and the command for it.
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
  writeToStderr(`${text}\n`);
}

/** Rows under headings, columns as wide as their widest cell. */
export function printTable(
  headings: readonly string[],
  rows: readonly (readonly string[])[],
): void {
  const widths = headings.map((heading, column) =>
    Math.max(
      ...[heading, ...rows.map((row) => row[column] ?? "")].map((cell) => Bun.stringWidth(cell)),
    ),
  );
  for (const row of [headings, ...rows]) {
    const cells = row.map(
      (cell, column) => cell + " ".repeat((widths[column] ?? 0) - Bun.stringWidth(cell)),
    );
    printData(cells.join("  ").trimEnd());
  }
}

/** Epoch milliseconds as UTC to the second; a dash for none. */
export function formatTime(time: number | null): string {
  return time === null ? "-" : `${new Date(time).toISOString().slice(0, 19).replace("T", " ")}Z`;
}

/** Output: data to stdout, commentary to stderr. */
import { UserError } from "../domain/errors.ts";
import { OutputError, writeToStderr, writeToStdout } from "../output.ts";

export function printData(text: string): void {
  writeToStdout(`${text}\n`);
}

export function printJson(value: unknown): void {
  // JSON itself escapes those below U+0020.
  printData(JSON.stringify(value, null, 2).replaceAll(/[\u007f-\u009f]/g, escapeControl));
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
  writeToStderr(`${escapeControls(text)}\n`);
}

/** Rows under headings, columns as wide as their widest cell. */
export function printTable(
  headings: readonly string[],
  rows: readonly (readonly string[])[],
): void {
  const lines = [headings, ...rows].map((row) => row.map(escapeControls));
  const widths = headings.map((_, column) =>
    Math.max(...lines.map((line) => Bun.stringWidth(line[column] ?? ""))),
  );
  for (const line of lines) {
    const cells = line.map(
      (cell, column) => cell + " ".repeat((widths[column] ?? 0) - Bun.stringWidth(cell)),
    );
    printData(cells.join("  ").trimEnd());
  }
}

/** Epoch milliseconds as UTC to the second; a dash for none. */
export function formatTime(time: number | null): string {
  return time === null ? "-" : `${new Date(time).toISOString().slice(0, 19).replace("T", " ")}Z`;
}

/** Terminals act on control characters, and a restored database may have them in a name or label. */
function escapeControls(text: string): string {
  return text.replaceAll(/\p{Cc}/gu, escapeControl);
}

function escapeControl(character: string): string {
  return `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`;
}

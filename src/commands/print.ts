/** Output: data to stdout, commentary to stderr. */
import { writeToStderr, writeToStdout } from "../output.ts";

export function printData(text: string): void {
  writeToStdout(`${text}\n`);
}

export function printJson(value: unknown): void {
  printData(JSON.stringify(value, null, 2));
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

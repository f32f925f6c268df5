/**
 * Tables of texts. Control characters, and blanks that count, are written as their symbols
 * (␀ ␉ ␊ ␍ ␠ …), because a table has its own line ends and blanks.
 */

/** Texts between blanks. */
export function words(table: string): string[] {
  return table
    .trim()
    .split(/[ \n]+/)
    .map(withControls);
}

/** A text a line. */
export function lines(table: string): string[] {
  const all = table.trim().split("\n");
  return all.map((line) => withControls(line.trim()));
}

function withControls(text: string): string {
  return text
    .replaceAll("␡", "\u007f")
    .replaceAll(/[\u2400-\u2420]/g, (symbol) => String.fromCharCode(symbol.charCodeAt(0) - 0x2400));
}

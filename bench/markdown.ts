/** Markdown, and numbers in it. */

/** Columns of numbers, by index, are aligned to the right. */
export function table(
  headings: readonly string[],
  rows: readonly (readonly string[])[],
  numeric: readonly number[],
): string {
  const rule = headings.map((_, column) => (numeric.includes(column) ? "---:" : "---"));
  return [headings, rule, ...rows].map((row) => `| ${row.join(" | ")} |`).join("\n");
}

export function formatCount(value: number): string {
  return Math.round(value).toLocaleString("en-US");
}

/** Three digits or more, whatever the size. */
export function formatNumber(value: number): string {
  if (Math.abs(value) >= 1_000) return formatCount(value);
  return value.toFixed(Math.abs(value) >= 100 ? 0 : Math.abs(value) >= 10 ? 1 : 2);
}

export function percent(share: number): string {
  return `${Math.round(share * 100)} %`;
}

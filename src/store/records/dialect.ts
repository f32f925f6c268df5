/** Words of SQL in which engines differ, as SQLite has them. */

/** Which index a query of one table uses. */
export function indexedBy(index: string): string {
  return `INDEXED BY ${index}`;
}

/** A query of one table reads it in the order of its rows. */
export const NOT_INDEXED = "NOT INDEXED";

/** A join that reads its tables in the order in which they stand. */
export const JOIN_NEXT = "CROSS JOIN";

/** The items of a JSON array as rows with the column `value`. */
export function itemsOf(parameter: string): string {
  return `json_each(${parameter})`;
}

/** The names of a JSON object in a column; none if that is null. */
export function keysOf(column: string): string {
  return `SELECT key FROM json_each(${column})`;
}

/** Keeps the query from using an index of this column. */
export function unindexed(column: string): string {
  return `+${column}`;
}

export function greaterOf(one: string, other: string): string {
  return `max(${one}, ${other})`;
}

export function lesserOf(one: string, other: string): string {
  return `min(${one}, ${other})`;
}

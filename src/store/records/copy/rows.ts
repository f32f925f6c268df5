/** Reads tables in parts, in an order that is the same on every engine. */
import type { Reader, Value } from "../sql.ts";
import type { Row } from "./ends.ts";

export interface Table {
  readonly name: string;
  readonly key: string;
}

/** Everything but signals, in an order in which no row refers to a later table. */
export const registry: readonly Table[] = [
  { name: "desks", key: "id" },
  { name: "api_keys", key: "id" },
  { name: "members", key: "id" },
  { name: "invitations", key: "id" },
  { name: "passkeys", key: "id" },
  { name: "audit", key: "id" },
  { name: "notice_places", key: "id" },
  { name: "notice_deliveries", key: "id" },
  { name: "notice_troubles", key: "name" },
];

export const signals: Table = { name: "signals", key: "seq" };

/** Up to 64 MB, if each signal has as much metadata as it may. */
const ROWS = 1_000;

/** Yields all rows with a key above `after`, by their key, {@link ROWS} at a time. The last part may be empty. */
export async function* partsOf(
  sql: Reader,
  { name, key }: Table,
  after: Value = null,
): AsyncGenerator<Row[]> {
  for (let last = after; ;) {
    const where = last === null ? "" : `WHERE ${key} > $1`;
    const values = last === null ? [] : [last];
    const text = `SELECT * FROM ${name} ${where} ORDER BY ${key} LIMIT ${ROWS}`;
    const rows = await sql.all<Row>(text, ...values);
    yield rows;
    if (rows.length < ROWS) return;
    last = rows.at(-1)?.[key] ?? null;
  }
}

/** The values of some columns as JSON, with bytes in PostgreSQL's notation: `\x` and hexadecimal. */
export function toJson(rows: readonly Row[], columns: readonly string[]): string {
  return JSON.stringify(
    rows.map((row) =>
      Object.fromEntries(columns.map((column) => [column, asText(row[column] ?? null)])),
    ),
  );
}

function asText(value: Value): string | number | null {
  return value instanceof Uint8Array ? `\\x${Buffer.from(value).toString("hex")}` : value;
}

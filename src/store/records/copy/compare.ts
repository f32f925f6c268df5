/** Compares two databases: how many rows each table has, their order, and every value. */
import { UserError } from "../../../lib/errors.ts";
import type { Reader } from "../sql.ts";
import type { Source, Target } from "./ends.ts";
import { partsOf, type Table, toJson } from "./rows.ts";

/** Returns the number of rows. Throws `UserError` at the first part that differs. */
export async function compareTable(
  from: Source,
  to: Target,
  table: Table,
  onRows: (rows: number) => void,
): Promise<number> {
  const copies = partsOf(to.sql, table);
  let count = 0;
  for await (const rows of partsOf(from.sql, table)) {
    const copy = (await copies.next()).value ?? [];
    const columns = Object.keys(rows[0] ?? {}).filter(
      (column) => !(to.numbersSignals && table.name === "signals" && column === "seq"),
    );
    if (rows.length !== copy.length || toJson(rows, columns) !== toJson(copy, columns)) {
      throw new UserError(
        `${table.name} of ${to.name} differs from ${from.name} (after ${count} rows that are the same): empty the target, then copy again.`,
      );
    }
    count += rows.length;
    onRows(rows.length);
  }
  return count;
}

export async function newestId(sql: Reader): Promise<string | null> {
  const row = await sql.get<{ id: string }>("SELECT id FROM signals ORDER BY seq DESC LIMIT 1");
  return row?.id ?? null;
}

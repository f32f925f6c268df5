/** What is in a database, value by value; and what was acknowledged of it, to be asked for again. */
import { Database } from "bun:sqlite";

const tables = {
  desks: "SELECT * FROM desks NOT INDEXED ORDER BY rowid",
  api_keys: "SELECT * FROM api_keys NOT INDEXED ORDER BY rowid",
  signals: "SELECT * FROM signals NOT INDEXED ORDER BY seq",
} as const;

type TableName = keyof typeof tables;
type Row = Readonly<Record<string, unknown>>;
export type Content = Readonly<Record<TableName, readonly Row[]>>;

/** From the tables alone: no index has a say. Throws where SQLite does not get through. */
export function readContent(path: string): Content {
  const db = new Database(path, { readonly: true });
  try {
    const rows = Object.entries(tables).map(([name, sql]) => [name, db.query(sql).all()] as const);
    return Object.fromEntries(rows) as Record<TableName, Row[]>;
  } finally {
    db.close();
  }
}

export interface Difference {
  /** "signals.symbol"; "signals" where rows are missing or added. */
  readonly where: string;
  readonly before: unknown;
  readonly after: unknown;
}

/** None where both are the same to the last bit. */
export function differences(before: Content, after: Content): Difference[] {
  return (Object.keys(tables) as TableName[]).flatMap((table) => {
    const [rowsBefore, rowsAfter] = [before[table], after[table]];
    if (rowsBefore.length !== rowsAfter.length) {
      return [{ where: table, before: rowsBefore.length, after: rowsAfter.length }];
    }
    return rowsBefore.flatMap((row, index) => rowDifferences(table, row, rowsAfter[index] ?? {}));
  });
}

function rowDifferences(table: TableName, before: Row, after: Row): Difference[] {
  return Object.keys(before)
    .filter((column) => !isSame(before[column], after[column]))
    .map((column) => ({
      where: `${table}.${column}`,
      before: before[column],
      after: after[column],
    }));
}

function isSame(before: unknown, after: unknown): boolean {
  if (before instanceof Uint8Array && after instanceof Uint8Array) {
    return Buffer.from(before).equals(after);
  }
  return Object.is(before, after);
}

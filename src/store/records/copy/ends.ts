/** The two ends of a copy from one engine to another. What is engine-specific is behind these. */
import type { Verification } from "../../../domain/storage/files.ts";
import type { Reader, Sql, Tx, Value } from "../sql.ts";

export type Row = Readonly<Record<string, Value>>;

/** Nothing changes it as long as it is open. */
export interface Source {
  /** For messages. */
  readonly name: string;
  readonly sql: Reader;
  /** Throws `UserError` if a server waits for it, which would go on with it after the copy. */
  refuseWaiting(): Promise<void>;
}

/** No server and no command uses it until it is {@link Target.finish}ed. */
export interface Target {
  readonly name: string;
  readonly sql: Sql;
  /** Gives signals numbers without gaps, and does not keep the source's. */
  readonly numbersSignals: boolean;
  /** Rows all have the same columns. A row whose `key` exists already replaces that row. */
  write(tx: Tx, table: string, rows: readonly Row[], key: string | null): Promise<void>;
  /** Makes what follows from the rows: the blocks of signals, and the numbers that come next. */
  complete(): Promise<void>;
  /** Verifies it and, if it is sound, opens it for servers. */
  finish(): Promise<Verification>;
}

/** `INSERT` of one row, or of more: `values` is what follows the columns. */
export function insertOf(
  table: string,
  columns: readonly string[],
  values: string,
  key: string | null,
): string {
  const update = columns.map((column) => `${column} = excluded.${column}`).join(", ");
  return `INSERT INTO ${table} (${columns.join(", ")}) ${values}${
    key === null ? "" : ` ON CONFLICT (${key}) DO UPDATE SET ${update}`
  }`;
}

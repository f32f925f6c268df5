/**
 * The port between the records and an engine. A statement's parameters are `$1`, `$2`, … Every public function
 * of the records that changes something is one transaction.
 */

export type Value = string | number | Uint8Array | null;

export interface Reader {
  /** Epoch milliseconds; in a transaction, when it began. */
  readonly now: number;
  all<Row>(sql: string, ...values: readonly Value[]): Promise<Row[]>;
  /** Returns the first row, or null. */
  get<Row>(sql: string, ...values: readonly Value[]): Promise<Row | null>;
}

export interface Tx extends Reader {
  /** Returns how many rows it changed. */
  run(sql: string, ...values: readonly Value[]): Promise<number>;
}

export interface Sql extends Reader {
  /**
   * Holds the lock for writing from the start, so that what is read in it holds until the commit: `work`
   * must wait for nothing but the transaction. If it throws, nothing was changed.
   */
  transaction<T>(work: (tx: Tx) => Promise<T>): Promise<T>;
}

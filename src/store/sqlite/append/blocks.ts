/** Notes what each block of signals may contain, when the block is complete: see `store/records/signals/block-ranges.ts`. */
import type { Database } from "bun:sqlite";
import {
  BLOCK_SIGNALS,
  endOf,
  LISTED_FIELDS,
  LISTED_UNITS_MAX,
} from "../../records/signals/block-ranges.ts";
import type { Submission } from "../../../domain/storage/append.ts";

const IS_IN_BLOCK = `seq > ?1 * ${BLOCK_SIGNALS} AND seq <= (?1 + 1) * ${BLOCK_SIGNALS}`;

/** The values of a block's signals, as its row lists them. */
export interface BlockValues {
  readonly symbols: Set<string | null>;
  readonly others: Set<string | null>;
}

export function valuesOf(db: Database, block: number): BlockValues {
  const sql = `SELECT symbol, key_id, ${LISTED_FIELDS.join(", ")} FROM signals NOT INDEXED WHERE ${IS_IN_BLOCK}`;
  const rows = db.query(sql).values(block) as (string | null)[][];
  return {
    symbols: new Set(rows.map(([symbol = null]) => symbol)),
    others: new Set(rows.flatMap(([, ...others]) => others)),
  };
}

/** Runs on the writer's connection. */
export class BlockWriter {
  readonly #db: Database;
  readonly #insert;
  readonly #nextBlock;
  /** The `seq` that completes the next block. */
  #nextAt = 0;
  /** What the next block has so far; also from duplicates, and from transactions that were rolled back. */
  #values: BlockValues = { symbols: new Set(), others: new Set() };
  /** A block was completed, in a transaction that may have been rolled back since then. */
  #mustLoad = true;

  constructor(db: Database) {
    this.#nextBlock = db.query<{ block: number }, []>(
      "SELECT ifnull(max(block) + 1, 0) AS block FROM signal_blocks",
    );
    this.#insert = db.query(
      `INSERT INTO signal_blocks
       SELECT ?1, min(received_at), max(received_at), count(*), ?2, ?3 FROM signals NOT INDEXED WHERE ${IS_IN_BLOCK}`,
    );
    this.#db = db;
  }

  /** Call it in the transaction that stored these, or found duplicates among them. `lastSeq`: of the last stored one. */
  add(batch: readonly { readonly submission: Submission }[], lastSeq: number): void {
    if (this.#mustLoad) this.#load();
    const { symbols, others } = this.#values;
    for (const { submission } of batch) {
      const { keyId, signal } = submission;
      symbols.add(signal.symbol);
      others.add(keyId);
      for (const field of LISTED_FIELDS) others.add(signal[field]);
    }
    if (lastSeq < this.#nextAt) return;
    this.#mustLoad = true;
    let values = this.#values;
    for (let block = this.#next(); endOf(block) <= lastSeq; block += 1) {
      this.#insert.run(block, listed(values.symbols), listed(values.others));
      values = valuesOf(this.#db, block + 1);
    }
  }

  #load(): void {
    const block = this.#next();
    this.#nextAt = endOf(block);
    this.#values = valuesOf(this.#db, block);
    this.#mustLoad = false;
  }

  #next(): number {
    return this.#nextBlock.get()?.block ?? 0;
  }
}

/** Null if that would be too long. */
function listed(values: ReadonlySet<string | null>): string | null {
  const text = JSON.stringify([...values].filter((value) => value !== null));
  return text.length > LISTED_UNITS_MAX ? null : text;
}

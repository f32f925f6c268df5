/** Reads signals, a limited number of rows per call, so that no page or export blocks others. */
import type { Database } from "bun:sqlite";
import { encodeTime } from "ulid";
import { fieldNames } from "../../domain/signal.ts";
import type { SignalReader } from "../../domain/storage.ts";
import type { SignalList, SignalQuery, StoredSignal } from "../../domain/stored-signal.ts";

/** Rows that one search reads: tens of milliseconds at most. */
export const ROWS_LOOKED_AT_MAX = 20_000;

const RANDOM_CHARACTERS = 16;
const HIGHEST_ID = "Z".repeat(26);

const COLUMNS = `signals.id, desks.name AS desk, signals.received_at, signals.key_id, api_keys.label AS key_label,
  api_keys.last4 AS key_last4, ${fieldNames.map((name) => `signals.${name}`).join(", ")}`;
const JOINS = `CROSS JOIN api_keys ON api_keys.id = signals.key_id
  CROSS JOIN desks ON desks.id = signals.desk_id`;

/** How many of a desk's latest signals name its known symbols. */
const SYMBOLS_LOOKED_AT_MAX = 2_000;

/** Filters that a row must equal. */
const equal = ["source", "type", "side", "direction", "key_id"] as const;
/** Filters without an index: a search reads row after row. */
const searched = [...equal, "symbol"] as const;

/** A range of `seq`: above `low`, up to and including `high`. */
interface Range {
  readonly low: number;
  readonly high: number;
}

interface Bound {
  readonly seq: number;
  readonly id: string;
  readonly received_at: number;
}

export class SqliteSignals implements SignalReader {
  readonly #db: Database;

  constructor(db: Database) {
    this.#db = db;
  }

  list(query: SignalQuery): SignalList {
    const { filter, order, limit, metadataUnitsMax = Infinity } = query;
    const range = this.#range(query);
    const isSearch = searched.some((column) => filter[column] !== null);
    const bound = isSearch ? this.#bound(query, range) : null;
    const rows = this.#rows(query, narrow(range, bound, order));
    const { found, isFull } = take(rows, metadataUnitsMax);
    const signals = found.slice(0, limit);
    if (found.length > limit || isFull) {
      return { signals, more: signals.at(-1)?.id ?? null, searchedTo: null };
    }
    if (bound === null) return { signals, more: null, searchedTo: null };
    const { id, received_at } = bound;
    return { signals, more: id, searchedTo: { id, received_at } };
  }

  get(deskId: number | null, id: string): StoredSignal | null {
    return this.#db
      .query<StoredSignal, [string, number | null]>(
        `SELECT ${COLUMNS} FROM signals ${JOINS}
         WHERE signals.id = ?1 AND (?2 IS NULL OR signals.desk_id = ?2)`,
      )
      .get(id.toUpperCase(), deskId);
  }

  find(deskId: number | null, text: string): StoredSignal[] {
    const desks = deskId === null ? this.#deskIds() : [deskId];
    const found = [
      this.get(deskId, text),
      ...desks.map((desk) => this.#byClientId(desk, text)),
    ].filter((signal) => signal !== null);
    return found.filter(({ id }, at) => found.findIndex((other) => other.id === id) === at);
  }

  progress(query: SignalQuery, id: string): number {
    const { low, high } = this.#range(query);
    const end = Math.min(high, this.#lastSeq("<=", HIGHEST_ID));
    return end <= low ? 1 : Math.min(1, Math.max(0, (this.#lastSeq("<=", id) - low) / (end - low)));
  }

  symbols(deskId: number, limit: number): string[] {
    const rows = this.#db.query<{ symbol: string }, [number, number, number]>(
      `SELECT DISTINCT symbol FROM (
         SELECT symbol FROM signals INDEXED BY signals_desk WHERE desk_id = ? ORDER BY seq DESC LIMIT ?
       ) LIMIT ?`,
    );
    return rows.all(deskId, SYMBOLS_LOOKED_AT_MAX, limit).map(({ symbol }) => symbol);
  }

  #deskIds(): number[] {
    const desks = this.#db.query<{ id: number }, []>("SELECT id FROM desks ORDER BY name").all();
    return desks.map(({ id }) => id);
  }

  #byClientId(deskId: number, clientSignalId: string): StoredSignal | null {
    return this.#db
      .query<StoredSignal, [number, string]>(
        `SELECT ${COLUMNS} FROM signals ${JOINS}
         WHERE signals.desk_id = ? AND signals.client_signal_id = ?`,
      )
      .get(deskId, clientSignalId);
  }

  /** Rows are never deleted, so `seq` has no gaps. */
  countSince(time: number): number {
    const newest = this.#lastSeq("<=", HIGHEST_ID);
    return newest - this.#lastSeq("<", firstIdAt(time));
  }

  /** Ids increase with `seq`, so times and cursors are limits of a range. */
  #range({ filter, before, after }: SignalQuery): Range {
    const lows = [
      after == null ? 0 : this.#lastSeq("<=", after),
      filter.from === null ? 0 : this.#lastSeq("<", firstIdAt(filter.from)),
    ];
    const highs = [
      before == null ? Number.MAX_SAFE_INTEGER : this.#lastSeq("<", before),
      filter.to === null ? Number.MAX_SAFE_INTEGER : this.#lastSeq("<", firstIdAt(filter.to)),
    ];
    return { low: Math.max(...lows), high: Math.min(...highs) };
  }

  /** Returns the last `seq` of any desk, or 0. */
  #lastSeq(relation: "<" | "<=", id: string): number {
    const row = this.#db
      .query<{ seq: number }, [string]>(
        `SELECT seq FROM signals WHERE id ${relation} ? ORDER BY id DESC LIMIT 1`,
      )
      .get(id);
    return row?.seq ?? 0;
  }

  /** Returns the last row that a search reads; null if the range has no more rows. */
  #bound({ deskId, order }: SignalQuery, { low, high }: Range): Bound | null {
    const rows = this.#db
      .query<Bound, Record<string, number>>(
        `SELECT seq, id, received_at FROM signals ${placesOf(deskId)}
         ORDER BY seq ${direction[order]} LIMIT 2 OFFSET $skipped`,
      )
      .all({ ...deskOf(deskId), low, high, skipped: ROWS_LOOKED_AT_MAX - 1 });
    return rows.length === 2 ? (rows[0] ?? null) : null;
  }

  /** Reads one row more than the limit, to tell whether there are more. */
  #rows(query: SignalQuery, range: Range): Iterable<StoredSignal> {
    const { symbol } = query.filter;
    if (symbol !== null) return this.#bySeq(this.#withSymbol(query, range, symbol), query.order);
    return this.#select(query, range, { columns: COLUMNS, joins: JOINS });
  }

  /** Here and not in SQL: SQLite ignores the case of A to Z only. */
  #withSymbol(query: SignalQuery, range: Range, text: string): number[] {
    const wanted = folded(text);
    const every = { ...query, limit: ROWS_LOOKED_AT_MAX };
    const seqs: number[] = [];
    for (const { seq, symbol } of this.#select<{ seq: number; symbol: string }>(every, range, {
      columns: "seq, symbol",
    })) {
      if (folded(symbol).includes(wanted)) seqs.push(seq);
      if (seqs.length > query.limit) break;
    }
    return seqs;
  }

  #bySeq(seqs: readonly number[], order: SignalQuery["order"]): Iterable<StoredSignal> {
    return this.#db
      .query<StoredSignal, [string]>(
        `SELECT ${COLUMNS} FROM signals ${JOINS}
         WHERE signals.seq IN (SELECT value FROM json_each(?)) ORDER BY signals.seq ${direction[order]}`,
      )
      .iterate(JSON.stringify(seqs));
  }

  #select<Row>(
    { deskId, filter, order, limit }: SignalQuery,
    range: Range,
    { columns, joins = "" }: { columns: string; joins?: string },
  ): Iterable<Row> {
    const used = equal.filter((column) => filter[column] !== null);
    return this.#db
      .query<Row, Record<string, string | number>>(
        `SELECT ${columns} FROM signals ${placesOf(deskId, joins)}
           ${used.map((column) => `AND signals.${column} = $${column}`).join(" ")}
         ORDER BY signals.seq ${direction[order]} LIMIT $limit`,
      )
      .iterate({
        ...deskOf(deskId),
        ...range,
        limit: limit + 1,
        ...Object.fromEntries(used.map((column) => [column, filter[column] ?? ""])),
      });
  }
}

/** `toLowerCase` writes a final Σ as ς, but a part of a symbol may end elsewhere. */
function folded(text: string): string {
  return text.toLowerCase().replaceAll("ς", "σ");
}

/** A desk's signals are found by its index, all desks' by the order of storage itself. */
function placesOf(deskId: number | null, joins = ""): string {
  const inRange = "signals.seq > $low AND signals.seq <= $high";
  return deskId === null
    ? `NOT INDEXED ${joins} WHERE ${inRange}`
    : `INDEXED BY signals_desk ${joins} WHERE signals.desk_id = $desk AND ${inRange}`;
}

function deskOf(deskId: number | null): Record<string, number> {
  return deskId === null ? {} : { desk: deskId };
}

const direction: Record<SignalQuery["order"], string> = { newest: "DESC", oldest: "ASC" };

function take(
  rows: Iterable<StoredSignal>,
  unitsMax: number,
): { readonly found: StoredSignal[]; readonly isFull: boolean } {
  const found: StoredSignal[] = [];
  let units = 0;
  for (const row of rows) {
    found.push(row);
    units += row.metadata?.length ?? 0;
    if (units >= unitsMax) return { found, isFull: true };
  }
  return { found, isFull: false };
}

function narrow(range: Range, bound: Bound | null, order: SignalQuery["order"]): Range {
  if (bound === null) return range;
  return order === "newest" ? { ...range, low: bound.seq - 1 } : { ...range, high: bound.seq };
}

/** Returns the lowest id that can be given out from this time on. (An id's time is later than `received_at` after a clock stepped back.) */
function firstIdAt(timeMs: number): string {
  return encodeTime(timeMs) + "0".repeat(RANDOM_CHARACTERS);
}

/** Reads signals, a limited number of rows per call, so that no page or export blocks others. */
import type { Database } from "bun:sqlite";
import { countAt, type Range, rangesOf } from "./block-ranges.ts";
import { equal, folded, searchOf } from "./signal-search.ts";
import { fieldNames } from "../../../domain/signal/signal.ts";
import type { SignalReader } from "../../../domain/storage/signals.ts";
import type {
  SignalList,
  SignalQuery,
  StoredSignal,
} from "../../../domain/signal/stored-signal.ts";

/** Rows that one search reads: tens of milliseconds at most. */
export const ROWS_LOOKED_AT_MAX = 20_000;

const HIGHEST_ID = "Z".repeat(26);

const COLUMNS = `signals.id, desks.name AS desk, signals.received_at, signals.key_id, api_keys.label AS key_label,
  api_keys.last4 AS key_last4, ${fieldNames.map((name) => `signals.${name}`).join(", ")}`;
const JOINS = `CROSS JOIN api_keys ON api_keys.id = signals.key_id
  CROSS JOIN desks ON desks.id = signals.desk_id`;

/** How many of a desk's latest signals name its known symbols. */
const SYMBOLS_LOOKED_AT_MAX = 2_000;

interface Bound {
  readonly seq: number;
  readonly id: string;
  readonly received_at: number;
}

interface Part {
  readonly count: number;
  readonly bound: Bound | null;
}

const NO_BOUND: Part = { count: 0, bound: null };

export class SqliteSignals implements SignalReader {
  readonly #db: Database;

  constructor(db: Database) {
    this.#db = db;
  }

  list(query: SignalQuery): SignalList {
    const { limit, metadataUnitsMax = Infinity } = query;
    const rows = this.#search(query);
    const signals: StoredSignal[] = [];
    let units = 0;
    for (;;) {
      const { done, value } = rows.next();
      if (done) {
        const searchedTo = value && { id: value.id, received_at: value.received_at };
        return { signals, more: value?.id ?? null, searchedTo };
      }
      if (signals.length < limit && units < metadataUnitsMax) {
        signals.push(value);
        units += value.metadata?.length ?? 0;
        continue;
      }
      rows.return(null);
      return { signals, more: signals.at(-1)?.id ?? null, searchedTo: null };
    }
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
    const ends = (["oldest", "newest"] as const).flatMap((order) => {
      for (const range of this.#ranges({ ...query, order })) return [range];
      return [];
    });
    const low = Math.min(...ends.map((range) => range.low));
    const high = Math.min(
      Math.max(...ends.map((range) => range.high)),
      this.#lastSeq("<=", HIGHEST_ID),
    );
    return high <= low
      ? 1
      : Math.min(1, Math.max(0, (this.#lastSeq("<=", id) - low) / (high - low)));
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

  countBetween(from: number, to: number): number {
    return countAt(this.#db, { from, to });
  }

  /** Yields what the query finds, in its order. Returns the last row that it read, if it stopped there. */
  *#search(query: SignalQuery): Generator<StoredSignal, Bound | null> {
    const isSearch = searchOf(query.filter) !== null;
    let left = isSearch ? ROWS_LOOKED_AT_MAX : Infinity;
    for (const range of this.#ranges(query)) {
      if (range.low === range.high) {
        const place = this.#lastRead(query, range.low);
        if (place !== null) return place;
        continue;
      }
      const { count, bound } = isSearch ? this.#bound(query, range, left) : NO_BOUND;
      yield* this.#rows(query, narrow(range, bound, query.order));
      left -= count;
      if (bound !== null) return bound;
    }
    return null;
  }

  /** Ids increase with `seq`, so cursors are limits of a range. */
  *#ranges({ deskId, filter, before, after, order }: SignalQuery): Generator<Range, void> {
    const range = {
      low: after == null ? 0 : this.#lastSeq("<=", after),
      high: before == null ? Number.MAX_SAFE_INTEGER : this.#lastSeq("<", before),
    };
    if (range.low >= range.high) return;
    const search = searchOf(filter);
    // Few signals are read at once, whatever is in the blocks.
    const isLong =
      search !== null && this.#bound({ deskId, order }, range, ROWS_LOOKED_AT_MAX).bound !== null;
    const mayHave = isLong ? search : null;
    if (filter.from === null && filter.to === null && mayHave === null) yield range;
    else yield* rangesOf(this.#db, { time: filter, mayHave, order }, range);
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

  /** How many rows of a range a search reads, and the last of them; null if the range has fewer than are left. */
  #bound(
    { deskId, order }: Pick<SignalQuery, "deskId" | "order">,
    { low, high }: Range,
    left: number,
  ): Part {
    const { count, seq } = this.#db
      .query(
        `SELECT count(*) AS count, ${order === "newest" ? "min" : "max"}(seq) AS seq FROM
           (SELECT seq FROM signals ${placesOf(deskId)} ORDER BY seq ${direction[order]} LIMIT $left)`,
      )
      .get({ ...deskOf(deskId), low, high, left }) as { count: number; seq: number | null };
    const bound =
      count < left
        ? null
        : this.#db
            .query<Bound, [number | null]>("SELECT seq, id, received_at FROM signals WHERE seq = ?")
            .get(seq);
    return { count, bound };
  }

  /** The last row before a place, in the query's order; null if none of the query's range is. */
  #lastRead({ deskId, order, before, after }: SignalQuery, place: number): Bound | null {
    const isNewest = order === "newest";
    const row = this.#db
      .query<Bound, Record<string, number>>(
        `SELECT seq, id, received_at FROM signals ${placesOf(deskId)}
         ORDER BY seq ${isNewest ? "ASC" : "DESC"} LIMIT 1`,
      )
      .get({
        ...deskOf(deskId),
        low: isNewest ? place : 0,
        high: isNewest ? Number.MAX_SAFE_INTEGER : place,
      });
    if (row === null) return null;
    const isInRange = isNewest
      ? before == null || row.id < before
      : after == null || row.id > after;
    return isInRange ? row : null;
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
           ${filter.from === null ? "" : "AND signals.received_at >= $from"}
           ${filter.to === null ? "" : "AND signals.received_at < $to"}
         ORDER BY signals.seq ${direction[order]} LIMIT $limit`,
      )
      .iterate({
        ...deskOf(deskId),
        ...range,
        ...(filter.from !== null && { from: filter.from }),
        ...(filter.to !== null && { to: filter.to }),
        limit: limit + 1,
        ...Object.fromEntries(used.map((column) => [column, filter[column] ?? ""])),
      });
  }
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

function narrow(range: Range, bound: Bound | null, order: SignalQuery["order"]): Range {
  if (bound === null) return range;
  return order === "newest" ? { ...range, low: bound.seq - 1 } : { ...range, high: bound.seq };
}

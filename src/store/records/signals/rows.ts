/** Reads rows of signals, and says what a search compares. */
import { fieldNames } from "../../../domain/signal/signal.ts";
import type { SignalFilter, SignalQuery } from "../../../domain/signal/stored-signal.ts";
import { indexedBy, itemsOf, NOT_INDEXED, unindexed } from "../dialect.ts";
import type { Reader, Value } from "../sql.ts";
import { inOrder, LISTED_FIELDS, type MayHave, type Range } from "./block-ranges.ts";
import type { Row } from "./intact.ts";

/** Rows that one search reads: tens of milliseconds at most. */
export const ROWS_LOOKED_AT_MAX = 20_000;
/** Rows that are read at once while the size of their metadata is limited: each may have 64 KB. */
const CHUNK_ROWS = 64;

/** Symbols that are read at once: a search often has its page after a few. */
const SYMBOL_ROWS = 1_024;

/** Filters that a row must equal. */
const equal = [...LISTED_FIELDS, "key_id"] as const;

/** `toLowerCase` writes a final Σ as ς, but a part of a symbol may end elsewhere. */
function folded(text: string): string {
  return text.toLowerCase().replaceAll("ς", "σ");
}

export const COLUMNS = `signals.seq, signals.desk_id, signals.hash, signals.id, desks.name AS desk, signals.received_at, signals.key_id, api_keys.label AS key_label,
  api_keys.last4 AS key_last4, ${fieldNames.map((name) => `signals.${name}`).join(", ")}`;
/** `LEFT`: a signal without a key or desk is damaged, and must not be skipped. */
export const JOINS = `LEFT JOIN api_keys ON api_keys.id = signals.key_id
  LEFT JOIN desks ON desks.id = signals.desk_id`;

/** Reads one row more than the limit, to tell whether there are more. */
export async function* rowsOf(sql: Reader, query: SignalQuery, range: Range): AsyncGenerator<Row> {
  const { limit, metadataUnitsMax, order } = query;
  const { symbol } = query.filter;
  const seqs = symbol === null ? null : await withSymbol(sql, query, range, symbol);
  const rowsMax = metadataUnitsMax === undefined ? limit + 1 : CHUNK_ROWS;
  let rest = range;
  for (let read = 0; read <= limit;) {
    const count = Math.min(rowsMax, limit + 1 - read);
    const rows =
      seqs === null
        ? await select<Row>(sql, query, rest, { columns: COLUMNS, joins: JOINS, count })
        : await bySeq(sql, seqs.slice(read, read + count), order);
    yield* rows;
    const last = rows.at(-1);
    if (last === undefined || rows.length < count) return;
    read += count;
    if (read > limit || seqs !== null) continue;
    rest =
      order === "newest"
        ? { ...rest, high: await lastSeq(sql, "<", last.id) }
        : { ...rest, low: await lastSeq(sql, "<=", last.id) };
  }
}

/** Here and not in SQL: SQLite ignores the case of A to Z only. */
async function withSymbol(
  sql: Reader,
  query: SignalQuery,
  range: Range,
  text: string,
): Promise<number[]> {
  const wanted = folded(text);
  const found: number[] = [];
  let rest = range;
  for (;;) {
    const rows = await select<{ seq: number; symbol: string }>(sql, query, rest, {
      columns: "seq, symbol",
      count: SYMBOL_ROWS,
    });
    for (const { seq, symbol } of rows) if (folded(symbol).includes(wanted)) found.push(seq);
    const last = rows.at(-1);
    if (last === undefined || rows.length < SYMBOL_ROWS || found.length > query.limit) break;
    rest = query.order === "newest" ? { ...rest, high: last.seq - 1 } : { ...rest, low: last.seq };
  }
  return found.slice(0, query.limit + 1);
}

function bySeq(sql: Reader, seqs: readonly number[], order: SignalQuery["order"]): Promise<Row[]> {
  return sql.all<Row>(
    `SELECT ${COLUMNS} FROM signals ${JOINS}
     WHERE signals.seq IN (SELECT CAST(value AS BIGINT) FROM ${itemsOf("$1")}) ORDER BY signals.seq ${inOrder[order]}`,
    JSON.stringify(seqs),
  );
}

function select<Found>(
  sql: Reader,
  { deskId, filter, order }: SignalQuery,
  range: Range,
  { columns, joins = "", count }: { columns: string; joins?: string; count: number },
): Promise<Found[]> {
  const { from, values } =
    filter.ids === null
      ? placesOf(deskId, range, joins)
      : placesOfIds(deskId, range, filter.ids, joins);
  const given = (value: Value): string => `$${values.push(value)}`;
  const conditions = equal.flatMap((column) =>
    filter[column] === null ? [] : [`AND signals.${column} = ${given(filter[column])}`],
  );
  if (filter.from !== null) conditions.push(`AND signals.received_at >= ${given(filter.from)}`);
  if (filter.to !== null) conditions.push(`AND signals.received_at < ${given(filter.to)}`);
  return sql.all<Found>(
    `SELECT ${columns} FROM ${from} ${conditions.join(" ")}
     ORDER BY signals.seq ${inOrder[order]} LIMIT ${given(count)}`,
    ...values,
  );
}

/** A desk's signals are found by its index, all desks' by the order of storage itself. */
export function placesOf(
  deskId: number | null,
  { low, high }: Range,
  joins = "",
): { from: string; values: Value[] } {
  const inRange = "signals.seq > $1 AND signals.seq <= $2";
  return deskId === null
    ? { from: `signals ${NOT_INDEXED} ${joins} WHERE ${inRange}`, values: [low, high] }
    : {
        from: `signals ${indexedBy("signals_desk")} ${joins} WHERE ${inRange} AND signals.desk_id = $3`,
        values: [low, high, deskId],
      };
}

/** By the index of ids. */
function placesOfIds(
  deskId: number | null,
  { low, high }: Range,
  ids: readonly string[],
  joins: string,
): { from: string; values: Value[] } {
  const seq = unindexed("signals.seq");
  return {
    from: `signals ${joins} WHERE ${seq} > $1 AND ${seq} <= $2 AND ${unindexed("signals.desk_id")} = coalesce($3, signals.desk_id)
      AND signals.id IN (SELECT value FROM ${itemsOf("$4")})`,
    values: [low, high, deskId, JSON.stringify(ids)],
  };
}

/** Returns the last `seq` of any desk, or 0. */
export async function lastSeq(sql: Reader, relation: "<" | "<=", id: string): Promise<number> {
  const row = await sql.get<{ seq: number }>(
    `SELECT seq FROM signals WHERE id ${relation} $1 ORDER BY id DESC LIMIT 1`,
    id,
  );
  return row?.seq ?? 0;
}

/** Whether a block may have what the filter wants; null for a filter of times alone, and of ids, which have an index. */
export function searchOf(filter: SignalFilter): MayHave {
  if (filter.ids !== null) return null;
  const values = equal.flatMap((column) =>
    filter[column] === null ? [] : [JSON.stringify(filter[column])],
  );
  const { symbol } = filter;
  if (values.length === 0 && symbol === null) return null;
  const part = folded(JSON.stringify(symbol ?? "").slice(1, -1));
  return ({ symbols, others }) =>
    (others === null || values.every((value) => others.includes(value))) &&
    (symbols === null || folded(symbols).includes(part));
}

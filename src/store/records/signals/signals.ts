/** Reads signals, a limited number of rows per call, so that no page or export blocks others. */
import type {
  SignalList,
  SignalQuery,
  StoredSignal,
} from "../../../domain/signal/stored-signal.ts";
import type { SignalReader } from "../../../domain/storage/signals.ts";
import { countAt, inOrder, type Range, rangesOf } from "./block-ranges.ts";
import { indexedBy } from "../dialect.ts";
import { damageOf, type Row, toSignal } from "./intact.ts";
import { COLUMNS, JOINS, lastSeq, placesOf, ROWS_LOOKED_AT_MAX, rowsOf, searchOf } from "./rows.ts";
import type { Reader, Value } from "../sql.ts";

const HIGHEST_ID = "Z".repeat(26);

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

export function signals(sql: Reader) {
  return {
    list: (query) => list(sql, query),

    get: (deskId, id) => getSignal(sql, deskId, id),

    async find(deskId, text) {
      const desks = deskId === null ? await deskIds(sql) : [deskId];
      const all = [
        getSignal(sql, deskId, text),
        ...desks.map((desk) => findByClientId(sql, desk, text)),
      ];
      const found = (await Promise.all(all)).filter((signal) => signal !== null);
      return found.filter(({ id }, at) => found.findIndex((other) => other.id === id) === at);
    },

    async symbols(deskId, limit) {
      const rows = await sql.all<{ symbol: string }>(
        `SELECT symbol FROM signals ${indexedBy("signals_desk")}
         WHERE desk_id = $1 ORDER BY seq DESC LIMIT $2`,
        deskId,
        SYMBOLS_LOOKED_AT_MAX,
      );
      return [...new Set(rows.map(({ symbol }) => symbol))].slice(0, limit);
    },

    async progress(query, id) {
      const ends: Range[] = [];
      for (const order of ["oldest", "newest"] as const) {
        for await (const range of ranges(sql, { ...query, order })) {
          ends.push(range);
          break;
        }
      }
      const low = Math.min(...ends.map((range) => range.low));
      const last = await lastSeq(sql, "<=", HIGHEST_ID);
      const high = Math.min(Math.max(...ends.map((range) => range.high)), last);
      if (high <= low) return 1;
      const done = ((await lastSeq(sql, "<=", id)) - low) / (high - low);
      return Math.min(1, Math.max(0, done));
    },

    countBetween: (from, to) => countAt(sql, { from, to }),
  } satisfies SignalReader;
}

/** Ends before a damaged signal, so that readers get what is before it; throws if that is the first. */
async function list(sql: Reader, query: SignalQuery): Promise<SignalList> {
  const { limit, metadataUnitsMax = Infinity } = query;
  const found: StoredSignal[] = [];
  let units = 0;
  const rows = search(sql, query);
  for (;;) {
    const { done, value } = await rows.next();
    if (done) {
      const searchedTo = value && { id: value.id, received_at: value.received_at };
      return { signals: found, more: value?.id ?? null, searchedTo };
    }
    if (found.length === limit || units >= metadataUnitsMax) break;
    const signal = toSignal(value);
    if (signal === null && found.length === 0) throw await damageOf(sql, value);
    if (signal === null) break;
    found.push(signal);
    units += signal.metadata?.length ?? 0;
  }
  await rows.return(null);
  return { signals: found, more: found.at(-1)?.id ?? null, searchedTo: null };
}

function getSignal(sql: Reader, deskId: number | null, id: string): Promise<StoredSignal | null> {
  const [ofDesk, values] = deskId === null ? ["", []] : ["AND signals.desk_id = $2", [deskId]];
  return getWhere(sql, `signals.id = $1 ${ofDesk}`, id.toUpperCase(), ...values);
}

function findByClientId(
  sql: Reader,
  deskId: number,
  clientSignalId: string,
): Promise<StoredSignal | null> {
  const condition = "signals.desk_id = $1 AND signals.client_signal_id = $2";
  return getWhere(sql, condition, deskId, clientSignalId);
}

async function getWhere(
  sql: Reader,
  condition: string,
  ...values: readonly Value[]
): Promise<StoredSignal | null> {
  const row = await sql.get<Row>(
    `SELECT ${COLUMNS} FROM signals ${JOINS} WHERE ${condition}`,
    ...values,
  );
  if (row === null) return null;
  const signal = toSignal(row);
  if (signal === null) throw await damageOf(sql, row);
  return signal;
}

async function deskIds(sql: Reader): Promise<number[]> {
  const desks = await sql.all<{ id: number }>("SELECT id FROM desks ORDER BY name");
  return desks.map(({ id }) => id);
}

/** Yields what the query finds, in its order. Returns the last row that it read, if it stopped there. */
async function* search(sql: Reader, query: SignalQuery): AsyncGenerator<Row, Bound | null, void> {
  const isSearch = searchOf(query.filter) !== null;
  let left = isSearch ? ROWS_LOOKED_AT_MAX : Infinity;
  for await (const range of ranges(sql, query)) {
    if (range.low === range.high) {
      const place = await lastRead(sql, query, range.low);
      if (place !== null) return place;
      continue;
    }
    const { count, bound } = isSearch ? await boundOf(sql, query, range, left) : NO_BOUND;
    yield* rowsOf(sql, query, narrow(range, bound, query.order));
    left -= count;
    if (bound !== null) return bound;
  }
  return null;
}

/** Ids increase with `seq`, so cursors are limits of a range. */
async function* ranges(
  sql: Reader,
  { deskId, filter, before, after, order }: SignalQuery,
): AsyncGenerator<Range> {
  const range = {
    low: after == null ? 0 : await lastSeq(sql, "<=", after),
    high: before == null ? Number.MAX_SAFE_INTEGER : await lastSeq(sql, "<", before),
  };
  if (range.low >= range.high) return;
  const wanted = searchOf(filter);
  // Few signals are read at once, whatever is in the blocks.
  const isLong =
    wanted !== null &&
    (await boundOf(sql, { deskId, order }, range, ROWS_LOOKED_AT_MAX)).bound !== null;
  const mayHave = isLong ? wanted : null;
  const isTimed = filter.from !== null || filter.to !== null;
  if (filter.ids !== null || (!isTimed && mayHave === null)) yield range;
  else yield* rangesOf(sql, { time: filter, mayHave, order }, range);
}

/** How many rows of a range a search reads, and the last of them; null if the range has fewer than are left. */
async function boundOf(
  sql: Reader,
  { deskId, order }: Pick<SignalQuery, "deskId" | "order">,
  range: Range,
  left: number,
): Promise<Part> {
  const { from, values } = placesOf(deskId, range);
  const limit = `$${values.push(left)}`;
  const row = await sql.get<{ count: number; seq: number | null }>(
    `SELECT count(*) AS count, ${order === "newest" ? "min" : "max"}(seq) AS seq FROM
       (SELECT seq FROM ${from} ORDER BY seq ${inOrder[order]} LIMIT ${limit}) AS looked_at`,
    ...values,
  );
  const { count, seq } = row ?? { count: 0, seq: null };
  if (count < left) return { count, bound: null };
  const bound = await sql.get<Bound>(
    "SELECT seq, id, received_at FROM signals WHERE seq = $1",
    seq,
  );
  return { count, bound };
}

/** The last row before a place, in the query's order; null if none of the query's range is. */
async function lastRead(
  sql: Reader,
  { deskId, order, before, after }: SignalQuery,
  place: number,
): Promise<Bound | null> {
  const isNewest = order === "newest";
  const { from, values } = placesOf(
    deskId,
    isNewest ? { low: place, high: Number.MAX_SAFE_INTEGER } : { low: 0, high: place },
  );
  const row = await sql.get<Bound>(
    `SELECT seq, id, received_at FROM ${from} ORDER BY seq ${isNewest ? "ASC" : "DESC"} LIMIT 1`,
    ...values,
  );
  if (row === null) return null;
  const isInRange = isNewest ? before == null || row.id < before : after == null || row.id > after;
  return isInRange ? row : null;
}

function narrow(range: Range, bound: Bound | null, order: SignalQuery["order"]): Range {
  if (bound === null) return range;
  return order === "newest" ? { ...range, low: bound.seq - 1 } : { ...range, high: bound.seq };
}

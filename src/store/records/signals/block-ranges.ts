/**
 * Finds the blocks in which signals may be. Ids cannot tell the time: once the clock was ahead, they go on from the
 * greatest. And an index of symbols or keys would cost every signal more than one row per block does.
 */
import type { SignalQuery } from "../../../domain/signal/stored-signal.ts";
import { NOT_INDEXED } from "../dialect.ts";
import type { Reader } from "../sql.ts";

/** Signals per block. Never change it: `signal_blocks` depends on it. */
export const BLOCK_SIGNALS = 4_096;

/** Fields, beside the key and the symbol, by whose values a search can skip a block. */
export const LISTED_FIELDS = ["source", "type", "side", "direction"] as const;
/** In UTF-16 units: about a thousand symbols. Reading a longer list takes as long as reading the signals. */
export const LISTED_UNITS_MAX = 16_384;

/** Blocks that are searched as one range. */
const RANGE_BLOCKS_MAX = 64;
/** Blocks that are read at once: each may have 32 KB of values. */
const READ_BLOCKS_MAX = 256;
/** After so many blocks that were skipped by their values, a search may end: they take 20 to 400 ms, by their symbols. */
const SKIPPED_MAX = 4_096;

/** In the order of storage, or against it. */
export type Order = SignalQuery["order"];

export const inOrder: Record<Order, "ASC" | "DESC"> = { newest: "DESC", oldest: "ASC" };

/** A range of `seq`: above `low`, up to and including `high`. */
export interface Range {
  readonly low: number;
  readonly high: number;
}

export interface Time {
  /** Received at this moment or later; epoch milliseconds. */
  readonly from: number | null;
  /** Received before this moment. */
  readonly to: number | null;
}

/** JSON arrays; null: too many. */
export interface Listed {
  readonly symbols: string | null;
  readonly others: string | null;
}

/** Whether a block may have what is searched for; null: do not ask. */
export type MayHave = ((listed: Listed) => boolean) | null;

interface Search {
  readonly time: Time;
  readonly mayHave: MayHave;
  readonly order: Order;
}

/** Of `$1` and `$2`: {@link limitsOf}. */
const OVERLAPS = "received_max >= $1 AND received_min < $2";
const IS_WITHIN = "received_min >= $1 AND received_max < $2";

const JSON_STRING = /"(?:[^"\\]|\\.)*"/g;

/** Whether a row of `signal_blocks` lists all of these. */
export function lists(text: string | null, values: ReadonlySet<string | null>): boolean {
  if (text === null) return true;
  const listed = new Set(text.match(JSON_STRING));
  return [...values].every((value) => value === null || listed.has(JSON.stringify(value)));
}

/** The last `seq` of a block. */
export function endOf(block: number): number {
  return (block + 1) * BLOCK_SIGNALS;
}

/** The last `seq` of the last complete block. */
async function startOfRest(sql: Reader): Promise<number> {
  const row = await sql.get<{ last: number | null }>(
    "SELECT max(block) AS last FROM signal_blocks",
  );
  return row?.last == null ? 0 : endOf(row.last);
}

/**
 * Yields the parts of a range in which the signals may be, in this order of storage. An empty one is a place where a
 * search may end, because it has skipped many blocks.
 */
export async function* rangesOf(sql: Reader, search: Search, whole: Range): AsyncGenerator<Range> {
  const { time, order } = search;
  const rest = await startOfRest(sql);
  const hasRest = whole.high > rest;
  let last = hasRest && order === "newest" ? await restAt(sql, time, rest) : null;
  const complete = { ...whole, high: Math.min(rest, whole.high) };
  for await (const next of blocksOf(sql, search, complete)) {
    const joined: Range | null = last && join(last, next);
    if (last !== null && joined === null) yield within(last, whole);
    last = joined ?? next;
  }
  if (last !== null) yield within(last, whole);
  const end = hasRest && order === "oldest" ? await restAt(sql, time, rest) : null;
  if (end !== null) yield within(end, whole);
}

async function* blocksOf(
  sql: Reader,
  { time, mayHave, order }: Search,
  range: Range,
): AsyncGenerator<Range> {
  const listed = mayHave === null ? "NULL AS symbols, NULL AS others" : "symbols, others";
  let skipped = 0;
  for await (const one of readBlocks(sql, listed, { time, order, range })) {
    const [start, end] = [one.block * BLOCK_SIGNALS, endOf(one.block)];
    if (mayHave === null || mayHave(one)) {
      skipped = 0;
      yield { low: start, high: end };
    } else if (++skipped % SKIPPED_MAX === 0) {
      const place = order === "newest" ? start : end;
      yield { low: place, high: place };
    }
  }
}

async function* readBlocks(
  sql: Reader,
  listed: string,
  { time, order, range }: { time: Time; order: Order; range: Range },
): AsyncGenerator<Listed & { readonly block: number }> {
  let first = Math.floor(range.low / BLOCK_SIGNALS);
  let end = Math.ceil(range.high / BLOCK_SIGNALS);
  for (;;) {
    const blocks = await sql.all<Listed & { block: number }>(
      `SELECT block, ${listed} FROM signal_blocks
       WHERE ${OVERLAPS} AND block >= $3 AND block < $4
       ORDER BY block ${inOrder[order]} LIMIT ${READ_BLOCKS_MAX}`,
      ...limitsOf(time),
      first,
      end,
    );
    yield* blocks;
    const last = blocks.at(-1);
    if (last === undefined || blocks.length < READ_BLOCKS_MAX) return;
    if (order === "newest") end = last.block;
    else first = last.block + 1;
  }
}

/** The signals after the last complete block; null if none is of this time. */
async function restAt(sql: Reader, time: Time, rest: number): Promise<Range | null> {
  const found = await sql.get(
    `SELECT 1 FROM signals ${NOT_INDEXED}
     WHERE received_at >= $1 AND received_at < $2 AND seq > $3 LIMIT 1`,
    ...limitsOf(time),
    rest,
  );
  return found === null ? null : { low: rest, high: Number.MAX_SAFE_INTEGER };
}

function within({ low, high }: Range, whole: Range): Range {
  return { low: Math.max(low, whole.low), high: Math.min(high, whole.high) };
}

/** Null if there is something between them, or the two would be long. */
function join(one: Range, other: Range): Range | null {
  const isPlace = one.low === one.high || other.low === other.high;
  if (isPlace || (one.low !== other.high && one.high !== other.low)) return null;
  const joined = { low: Math.min(one.low, other.low), high: Math.max(one.high, other.high) };
  return joined.high - joined.low > RANGE_BLOCKS_MAX * BLOCK_SIGNALS ? null : joined;
}

/** Blocks within the time are counted as a whole. */
export async function countAt(sql: Reader, time: Time): Promise<number> {
  const row = await sql.get<{ count: number }>(
    `SELECT
      (SELECT coalesce(sum(signals), 0) FROM signal_blocks WHERE ${IS_WITHIN})
      + (SELECT count(*) FROM signal_blocks CROSS JOIN signals ${NOT_INDEXED}
         WHERE seq > block * ${BLOCK_SIGNALS} AND seq <= (block + 1) * ${BLOCK_SIGNALS}
           AND ${OVERLAPS} AND NOT (${IS_WITHIN}) AND received_at >= $1 AND received_at < $2)
      + (SELECT count(*) FROM signals ${NOT_INDEXED}
         WHERE received_at >= $1 AND received_at < $2 AND seq > $3) AS count`,
    ...limitsOf(time),
    await startOfRest(sql),
  );
  return row?.count ?? 0;
}

function limitsOf({ from, to }: Time): [from: number, to: number] {
  return [from ?? 0, to ?? Number.MAX_SAFE_INTEGER];
}

/**
 * Finds the blocks in which signals may be. Ids cannot tell the time: once the clock was ahead, they go on from the
 * greatest. And an index of symbols or keys would cost every signal more than one row per block does.
 */
import type { Database } from "bun:sqlite";
import { BLOCK_SIGNALS, endOf } from "../append/blocks.ts";

/** Blocks that are searched as one range. */
const RANGE_BLOCKS_MAX = 64;
/** After so many blocks that were skipped by their values, a search may end: they take 20 to 400 ms, by their symbols. */
const SKIPPED_MAX = 4_096;

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

type Order = "newest" | "oldest";

/** JSON arrays; null: too many. */
export interface Listed {
  readonly symbols: string | null;
  readonly others: string | null;
}

/** Whether a block may have what is searched for; null: do not ask. */
export type MayHave = ((listed: Listed) => boolean) | null;

const OVERLAPS = "received_max >= $from AND received_min < $to";
const IS_WITHIN = "received_min >= $from AND received_max < $to";

/** The last `seq` of the last complete block. */
function startOfRest(db: Database): number {
  const sql = "SELECT ifnull(max(block) + 1, 0) AS blocks FROM signal_blocks";
  return (db.query<{ blocks: number }, []>(sql).get()?.blocks ?? 0) * BLOCK_SIGNALS;
}

/**
 * Yields the parts of a range in which the signals may be, in this order of storage. An empty one is a place where a
 * search may end, because it has skipped many blocks.
 */
export function* rangesOf(
  db: Database,
  { time, mayHave, order }: { time: Time; mayHave: MayHave; order: Order },
  whole: Range,
): Generator<Range, void> {
  const rest = startOfRest(db);
  const hasRest = whole.high > rest;
  let last = hasRest && order === "newest" ? restAt(db, time, rest) : null;
  const complete = { ...whole, high: Math.min(rest, whole.high) };
  for (const next of blocksOf(db, { time, mayHave, order }, complete)) {
    const joined: Range | null = last && join(last, next);
    if (last !== null && joined === null) yield within(last, whole);
    last = joined ?? next;
  }
  if (last !== null) yield within(last, whole);
  const end = hasRest && order === "oldest" ? restAt(db, time, rest) : null;
  if (end !== null) yield within(end, whole);
}

function* blocksOf(
  db: Database,
  { time, mayHave, order }: { time: Time; mayHave: MayHave; order: Order },
  { low, high }: Range,
): Generator<Range, void> {
  const listed = mayHave === null ? "NULL AS symbols, NULL AS others" : "symbols, others";
  const blocks = db.query<Listed & { block: number }, Record<string, number>>(
    `SELECT block, ${listed} FROM signal_blocks WHERE block >= $first AND block < $end AND ${OVERLAPS}
     ORDER BY block ${order === "newest" ? "DESC" : "ASC"}`,
  );
  const range = { first: Math.floor(low / BLOCK_SIGNALS), end: high / BLOCK_SIGNALS };
  let skipped = 0;
  for (const one of blocks.iterate({ ...limitsOf(time), ...range })) {
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

/** The signals after the last complete block; null if none is of this time. */
function restAt(db: Database, time: Time, rest: number): Range | null {
  const sql = `SELECT 1 FROM signals NOT INDEXED
    WHERE seq > $rest AND received_at >= $from AND received_at < $to LIMIT 1`;
  const found = db.query(sql).get({ ...limitsOf(time), rest });
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

/** Blocks within the time are counted as a whole: rows are never deleted, so `seq` has no gaps. */
export function countAt(db: Database, time: Time): number {
  const sql = `SELECT
    (SELECT ${BLOCK_SIGNALS} * count(*) FROM signal_blocks WHERE ${IS_WITHIN})
    + (SELECT count(*) FROM signal_blocks CROSS JOIN signals NOT INDEXED
       ON seq > block * ${BLOCK_SIGNALS} AND seq <= (block + 1) * ${BLOCK_SIGNALS}
       WHERE ${OVERLAPS} AND NOT (${IS_WITHIN}) AND received_at >= $from AND received_at < $to)
    + (SELECT count(*) FROM signals NOT INDEXED
       WHERE seq > $rest AND received_at >= $from AND received_at < $to) AS count`;
  const query = db.query<{ count: number }, Record<string, number>>(sql);
  return query.get({ ...limitsOf(time), rest: startOfRest(db) })?.count ?? 0;
}

function limitsOf({ from, to }: Time): Record<"from" | "to", number> {
  return { from: from ?? 0, to: to ?? Number.MAX_SAFE_INTEGER };
}

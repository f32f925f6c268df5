/** Signals as the console looks for them: of one desk at a time, and never a whole table at once. */
import type { Database } from "bun:sqlite";
import { encodeTime } from "ulid";
import { fieldNames } from "../../domain/signal.ts";
import type {
  SignalFilter,
  SignalPage,
  SignalRequest,
  StoredSignal,
} from "../../domain/stored-signal.ts";

/** How many signals of the desk one search looks at: tens of milliseconds at most. */
export const ROWS_LOOKED_AT_MAX = 20_000;

/**
 * One chunk of {@link SqliteSignals.chunks} ends with the first of these that it reaches: what is in memory for
 * an export whose reader does not read. The second is metadata, in UTF-16 units.
 */
const CHUNK_ROWS = 250;
export const CHUNK_METADATA_UNITS = 128 * 1024;

/** Below every id. */
const LOWEST_ID = "0".repeat(26);
const RANDOM_CHARACTERS = 16;

const COLUMNS = `signals.id, signals.received_at, signals.key_id, api_keys.label AS key_label,
  api_keys.last4 AS key_last4, ${fieldNames.map((name) => `signals.${name}`).join(", ")}`;

/** Columns that have no index of their own: rows are looked at to find what fits. */
const searched = ["source", "type", "symbol", "side", "key_id"] as const;

/** Places in the order of storage: behind `low`, up to and with `high`. */
interface Range {
  readonly low: number;
  readonly high: number;
}

interface Bound {
  readonly seq: number;
  readonly id: string;
  readonly received_at: number;
}

type Order = "newest" | "oldest";

export class SqliteSignals {
  readonly #db: Database;

  constructor(db: Database) {
    this.#db = db;
  }

  /** With `after`: the signals next to it; else the newest ones. */
  page(request: SignalRequest): SignalPage {
    return this.#search(request, request.after == null ? "newest" : "oldest");
  }

  /** The newest ones, though there be more behind them, that are newer than `after`. */
  latest(request: SignalRequest): SignalPage {
    return this.#search(request, "newest");
  }

  /** Of the desk's newest signal, or an id below all others where there is none. */
  newestId(deskId: number): string {
    const row = this.#db
      .query<{ id: string }, [number]>(
        "SELECT id FROM signals INDEXED BY signals_desk WHERE desk_id = ? ORDER BY seq DESC LIMIT 1",
      )
      .get(deskId);
    return row?.id ?? LOWEST_ID;
  }

  /** Null for an id that is unknown, or another desk's. */
  get(deskId: number, id: string): StoredSignal | null {
    return this.#db
      .query<StoredSignal, [string, number]>(
        `SELECT ${COLUMNS} FROM signals CROSS JOIN api_keys ON api_keys.id = signals.key_id
         WHERE signals.id = ? AND signals.desk_id = ?`,
      )
      .get(id.toUpperCase(), deskId);
  }

  /** By `id` or `client_signal_id`. Two where the one's name is the other's id. */
  find(deskId: number, text: string): StoredSignal[] {
    const byId = this.get(deskId, text);
    const byClientId = this.#db
      .query<StoredSignal, [number, string]>(
        `SELECT ${COLUMNS} FROM signals CROSS JOIN api_keys ON api_keys.id = signals.key_id
         WHERE signals.desk_id = ? AND signals.client_signal_id = ?`,
      )
      .get(deskId, text);
    const isSame = byId?.id === byClientId?.id;
    return [byId, isSame ? null : byClientId].filter((found) => found !== null);
  }

  /**
   * All that the filter lets through, newest first, without those that arrive meanwhile. Between two
   * chunks, which may be empty, a caller can give way to others.
   */
  *chunks(
    { deskId, filter }: Pick<SignalRequest, "deskId" | "filter">,
    rowsMax: number,
  ): Generator<readonly StoredSignal[], void> {
    let before: string | null = null;
    for (let left = rowsMax; left > 0;) {
      const limit = Math.min(CHUNK_ROWS, left);
      const request = { deskId, filter, before, limit };
      const { signals, older }: SignalPage = this.#search(request, "newest", CHUNK_METADATA_UNITS);
      yield signals;
      if (older === null) return;
      before = older;
      left -= signals.length;
    }
  }

  /** `unitsMax`: ends with the signal whose metadata makes it more than this in all. */
  #search(request: SignalRequest, order: Order, unitsMax: number = Infinity): SignalPage {
    const { deskId, filter, limit } = request;
    const range = this.#range(request);
    const isSearch = searched.some((column) => filter[column] !== null);
    const bound = isSearch ? this.#bound(deskId, range, order) : null;
    const rows = this.#rows(deskId, filter, narrow(range, bound, order), order, limit + 1);
    const { found, isFull } = take(rows, unitsMax);
    const hasMore = found.length > limit || isFull;
    const signals = found.slice(0, limit);
    if (order === "oldest") signals.reverse();
    const searchedTo =
      bound === null || hasMore ? null : { id: bound.id, received_at: bound.received_at };
    const [first, last] = [signals[0], signals.at(-1)];
    const goOn = (edge: StoredSignal | undefined) =>
      hasMore ? (edge?.id ?? null) : (searchedTo?.id ?? null);
    const back = (edge: StoredSignal | undefined, otherwise: string) =>
      edge?.id ?? searchedTo?.id ?? otherwise;
    if (order === "oldest") {
      const older = back(last, request.after ?? LOWEST_ID);
      return { signals, older, newer: goOn(first), searchedTo };
    }
    const newer = request.before == null ? null : back(first, LOWEST_ID);
    return { signals, older: goOn(last), newer, searchedTo };
  }

  /** Ids rise with the order of storage, so times and cursors are places in it. */
  #range({ filter, before, after }: SignalRequest): Range {
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

  /** Of any desk; 0 where there is none. */
  #lastSeq(relation: "<" | "<=", id: string): number {
    const row = this.#db
      .query<{ seq: number }, [string]>(
        `SELECT seq FROM signals WHERE id ${relation} ? ORDER BY id DESC LIMIT 1`,
      )
      .get(id);
    return row?.seq ?? 0;
  }

  /** The last row that a search looks at; null where the range has no more rows than that. */
  #bound(deskId: number, { low, high }: Range, order: Order): Bound | null {
    const rows = this.#db
      .query<Bound, Record<string, number>>(
        `SELECT seq, id, received_at FROM signals INDEXED BY signals_desk
         WHERE desk_id = $desk AND seq > $low AND seq <= $high
         ORDER BY seq ${direction[order]} LIMIT 2 OFFSET $skipped`,
      )
      .all({ desk: deskId, low, high, skipped: ROWS_LOOKED_AT_MAX - 1 });
    return rows.length === 2 ? (rows[0] ?? null) : null;
  }

  #rows(
    deskId: number,
    filter: SignalFilter,
    { low, high }: Range,
    order: Order,
    limit: number,
  ): Iterable<StoredSignal> {
    const used = searched.filter((column) => filter[column] !== null);
    return this.#db
      .query<StoredSignal, Record<string, string | number>>(
        `SELECT ${COLUMNS} FROM signals INDEXED BY signals_desk
         CROSS JOIN api_keys ON api_keys.id = signals.key_id
         WHERE signals.desk_id = $desk AND signals.seq > $low AND signals.seq <= $high
           ${used.map((column) => `AND signals.${column} = $${column}`).join(" ")}
         ORDER BY signals.seq ${direction[order]} LIMIT $limit`,
      )
      .iterate({
        desk: deskId,
        low,
        high,
        limit,
        ...Object.fromEntries(used.map((column) => [column, filter[column] ?? ""])),
      });
  }
}

const direction: Record<Order, string> = { newest: "DESC", oldest: "ASC" };

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

function narrow(range: Range, bound: Bound | null, order: Order): Range {
  if (bound === null) return range;
  return order === "newest" ? { ...range, low: bound.seq - 1 } : { ...range, high: bound.seq };
}

/** No id given out at this moment or later is lower. (An id's time is later than `received_at` after a clock stepped back.) */
function firstIdAt(timeMs: number): string {
  return encodeTime(timeMs) + "0".repeat(RANDOM_CHARACTERS);
}

/** Reads signals a page at a time, newest first, and in chunks for an export. */
import type { SignalReader } from "../../domain/storage.ts";
import {
  everySignal,
  type SignalFilter,
  type SignalList,
  type StoredSignal,
} from "../../domain/stored-signal.ts";

/** Lower than every id. */
const LOWEST_ID = "0".repeat(26);

/** A chunk ends at the first of these: what is in memory for an export whose reader does not read. */
const CHUNK_ROWS = 250;
/** UTF-16 units. */
export const CHUNK_METADATA_UNITS = 128 * 1024;

export interface SignalPageQuery {
  readonly deskId: number;
  readonly filter: SignalFilter;
  /** Only signals older than this id. */
  readonly before: string | null;
  /** Only signals newer than this id: those next to it. */
  readonly after: string | null;
  readonly limit: number;
}

/** Newest first. */
export interface SignalPage {
  readonly signals: readonly StoredSignal[];
  /** The `before` of the next page; null: this is the last. */
  readonly older: string | null;
  /** The `after` of the page before this one; null: this is the first. */
  readonly newer: string | null;
  readonly searchedTo: SignalList["searchedTo"];
}

export async function readSignalPage(
  reader: SignalReader,
  { before, after, ...query }: SignalPageQuery,
): Promise<SignalPage> {
  if (after !== null) {
    const found = await reader.list({ ...query, before, after, order: "oldest" });
    const { more, searchedTo } = found;
    const signals = found.signals.toReversed();
    const older = signals.at(-1)?.id ?? searchedTo?.id ?? after;
    return { signals, older, newer: more, searchedTo };
  }
  const { signals, more, searchedTo } = await reader.list({ ...query, before, order: "newest" });
  const newer = before === null ? null : (signals[0]?.id ?? searchedTo?.id ?? LOWEST_ID);
  return { signals, older: more, newer, searchedTo };
}

/** Of the desk; null: it has none. */
export async function newestSignal(
  reader: SignalReader,
  deskId: number,
): Promise<StoredSignal | null> {
  const query = { deskId, filter: everySignal, order: "newest", limit: 1 } as const;
  return (await reader.list(query)).signals[0] ?? null;
}

/** The id of the desk's newest signal, or one that is lower than every id. */
export async function newestSignalId(reader: SignalReader, deskId: number): Promise<string> {
  return (await newestSignal(reader, deskId))?.id ?? LOWEST_ID;
}

/** Newest first, without those that arrive meanwhile. A chunk may be empty: others can have their turn then. */
export async function* readChunks(
  reader: SignalReader,
  { deskId, filter }: Pick<SignalPageQuery, "deskId" | "filter">,
  rowsMax: number,
): AsyncGenerator<readonly StoredSignal[], void> {
  const query = {
    deskId,
    filter,
    order: "newest",
    metadataUnitsMax: CHUNK_METADATA_UNITS,
  } as const;
  let before: string | null = null;
  for (let left = rowsMax; left > 0;) {
    const limit = Math.min(CHUNK_ROWS, left);
    const { signals, more }: SignalList = await reader.list({ ...query, before, limit });
    yield signals;
    if (more === null) return;
    before = more;
    left -= signals.length;
  }
}

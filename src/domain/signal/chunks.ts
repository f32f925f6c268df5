/** Reads many signals in chunks, so that no call takes long and none keeps the database's log from its checkpoint. */
import { incrementBase32 } from "ulid";
import { damagedId } from "./hash.ts";
import type { SignalReader } from "../storage/signals.ts";
import {
  everySignal,
  type SignalList,
  type SignalQuery,
  type StoredSignal,
} from "./stored-signal.ts";

/** Lower than every id. */
export const LOWEST_ID = "0".repeat(26);

interface ChunkSize {
  readonly rows: number;
  /** UTF-16 units. */
  readonly metadataUnits: number;
}

/**
 * Yields what the query finds, at most `limit` signals, in its order. With the order `newest`, signals
 * that arrive meanwhile are left out. A chunk may be empty: others can have their turn then.
 */
export async function* readChunks(
  reader: Pick<SignalReader, "list">,
  { limit: signalsMax, ...query }: SignalQuery,
  size: ChunkSize,
): AsyncGenerator<readonly StoredSignal[], void> {
  const cursor = query.order === "newest" ? "before" : "after";
  let from = query[cursor] ?? null;
  for (let left = signalsMax; left > 0;) {
    const limit = Math.min(size.rows, left);
    const { signals, more }: SignalList = await reader.list({
      ...query,
      [cursor]: from,
      limit,
      metadataUnitsMax: size.metadataUnits,
    });
    yield signals;
    if (more === null) return;
    from = more;
    left -= signals.length;
  }
}

/** The newest signals of all desks; none if one of them is damaged, which other checks say. */
export async function newestSignals(
  reader: Pick<SignalReader, "list">,
  limit: number,
): Promise<readonly StoredSignal[]> {
  const query = { deskId: null, filter: everySignal, order: "newest", limit } as const;
  try {
    return (await reader.list(query)).signals;
  } catch (error) {
    damagedId(error);
    return [];
  }
}

/** The newest signal of a desk, or the one before if that is damaged; null if there is none. */
export async function newestSignal(
  reader: Pick<SignalReader, "list">,
  deskId: number,
): Promise<StoredSignal | null> {
  try {
    return await newest(reader, deskId, null);
  } catch (error) {
    return newest(reader, deskId, damagedId(error));
  }
}

/**
 * The id of the newest signal, damaged or not, of a desk or of all (null), before an id if one is given; or one that is
 * lower than every id.
 */
export async function newestSignalId(
  reader: Pick<SignalReader, "list">,
  deskId: number | null,
  before: string | null = null,
): Promise<string> {
  try {
    return (await newest(reader, deskId, before))?.id ?? LOWEST_ID;
  } catch (error) {
    return damagedId(error);
  }
}

async function newest(
  reader: Pick<SignalReader, "list">,
  deskId: number | null,
  before: string | null,
): Promise<StoredSignal | null> {
  const query = { deskId, filter: everySignal, before, order: "newest", limit: 1 } as const;
  return (await reader.list(query)).signals[0] ?? null;
}

/** Whether there is such a signal, damaged or not: readers go on after a damaged one. */
export async function isStored(
  reader: Pick<SignalReader, "get">,
  deskId: number | null,
  id: string,
): Promise<boolean> {
  try {
    return (await reader.get(deskId, id)) !== null;
  } catch (error) {
    return damagedId(error) === id;
  }
}

/** A `before` that includes this id. */
export function upTo(id: string): string {
  return incrementBase32(id);
}

/** A part of the list of signals, with the damaged ones in their places. */
import { damagedId } from "../../../domain/signal/hash.ts";
import type {
  SignalList,
  SignalQuery,
  StoredSignal,
} from "../../../domain/signal/stored-signal.ts";
import type { SignalReader } from "../../../domain/storage/signals.ts";

/** None of its values is shown. */
export interface DamagedSignal {
  readonly id: string;
  readonly isDamaged: true;
}

export type ListedSignal = StoredSignal | DamagedSignal;

interface Listing extends Omit<SignalList, "signals"> {
  readonly signals: readonly ListedSignal[];
}

/** Newest first. */
export async function listWithDamaged(
  reader: SignalReader,
  query: SignalQuery & { readonly order: "newest" },
): Promise<Listing> {
  const signals: ListedSignal[] = [];
  let { before = null } = query;
  for (;;) {
    const limit = query.limit - signals.length;
    const part = await listPart(reader, { ...query, before, limit });
    signals.push(...part.signals);
    before = part.more;
    const isOver = before === null || part.searchedTo !== null || signals.length >= query.limit;
    if (isOver) return { ...part, signals };
  }
}

/** Up to a damaged signal, or that signal alone. */
async function listPart(reader: SignalReader, query: SignalQuery): Promise<Listing> {
  try {
    return await reader.list(query);
  } catch (error) {
    const id = damagedId(error);
    return { signals: [{ id, isDamaged: true }], more: id, searchedTo: null };
  }
}

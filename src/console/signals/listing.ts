/** Reads signals a page at a time, newest first. */
import { LOWEST_ID } from "../../domain/signal-chunks.ts";
import type { SignalReader } from "../../domain/storage.ts";
import type { SignalFilter, SignalList, StoredSignal } from "../../domain/stored-signal.ts";

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

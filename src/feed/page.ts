/** One page of the feed, read chunk by chunk. */
import { fileLines } from "../domain/signal/file.ts";
import type { FeedStore } from "../domain/storage/feed.ts";
import { damagedId } from "../domain/signal/hash.ts";
import { everySignal, type SignalList } from "../domain/signal/stored-signal.ts";

/** Well under a millisecond of the thread that answers signals. */
const CHUNK = { rows: 64, metadataUnits: 128 * 1_024 } as const;
/** A page ends with the chunk that exceeds this. */
const PAGE_BYTES_MAX = 1_048_576;

interface Part {
  /** Null: all desks. */
  readonly deskId: number | null;
  /** Null: from the beginning. */
  readonly after: string | null;
  readonly limit: number;
}

export class Page {
  readonly #store: Pick<FeedStore, "list">;
  readonly #deskId: number | null;
  #after: string | null;
  #rowsLeft: number;
  #bytesLeft = PAGE_BYTES_MAX;
  /** The last chunk was read. */
  isOver = false;

  constructor(store: Pick<FeedStore, "list">, { deskId, after, limit }: Part) {
    this.#store = store;
    this.#deskId = deskId;
    this.#after = after;
    this.#rowsLeft = limit;
  }

  get isEmpty(): boolean {
    return this.#bytesLeft === PAGE_BYTES_MAX;
  }

  /** Returns a line per signal, and the page's last line if it is over. While it is empty, it can be read again. */
  async readChunk(): Promise<string> {
    const { signals, more } = await this.#list();
    const lines = signals.map(fileLines.ndjson).join("");
    this.#after = signals.at(-1)?.id ?? this.#after;
    this.#rowsLeft -= signals.length;
    this.#bytesLeft -= Buffer.byteLength(lines);
    this.isOver = more === null || this.#rowsLeft === 0 || this.#bytesLeft <= 0;
    if (!this.isOver) return lines;
    return `${lines}${JSON.stringify({ next: this.#after, done: more === null })}\n`;
  }

  /** A page ends before a damaged signal. The next one begins with it, and its whole answer is the error. */
  async #list(): Promise<Pick<SignalList, "signals" | "more">> {
    try {
      return await this.#store.list({
        deskId: this.#deskId,
        filter: everySignal,
        order: "oldest",
        after: this.#after,
        limit: Math.min(CHUNK.rows, this.#rowsLeft),
        metadataUnitsMax: CHUNK.metadataUnits,
      });
    } catch (error) {
      const more = damagedId(error);
      if (this.isEmpty) throw error;
      this.#rowsLeft = 0;
      return { signals: [], more };
    }
  }
}

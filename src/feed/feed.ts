/**
 * The feed: signals in the order of storage, from a reader's cursor on. It keeps nothing about readers.
 * Ids strictly increase in the order of commits, and one connection sees every commit before the next: so
 * whoever reads after the last id that they have misses nothing, and gets nothing twice.
 */
import type { FeedStore } from "../domain/storage.ts";
import { newestSignal } from "../domain/signal-chunks.ts";
import { fileLines } from "../domain/signal-file.ts";
import { everySignal } from "../domain/stored-signal.ts";
import { type FeedQuery, invalid, NOW } from "./query.ts";
import { Places } from "./places.ts";
import { Turns } from "./turns.ts";
import type { WakeUps } from "./wake-ups.ts";

/** What one turn reads: well under a millisecond of the thread that answers signals. */
const CHUNK = { rows: 64, metadataUnits: 128 * 1_024 } as const;
/** A page ends with the chunk that exceeds this: UTF-16 units. */
const PAGE_UNITS_MAX = 1_048_576;
/** How soon a revoked key ends a reader that waits. */
const RECHECK_MS = 1_000;

/** What the one who asks may read. */
export interface Access {
  /** Null: all desks. */
  readonly deskId: number | null;
  /** What {@link Places} counts by. */
  readonly place: string;
  /** Throws `unauthorized` if the key has ended. */
  readonly recheck: () => void | Promise<void>;
}

interface Page {
  /** A line per signal. */
  readonly lines: string;
  readonly next: string | null;
  readonly isDone: boolean;
}

export class Feed {
  readonly #store: FeedStore;
  readonly #places = new Places();
  readonly #turns = new Turns();
  readonly #wakeUps: WakeUps;
  #isStopping = false;

  /** `wakeUps`: told of what is stored. */
  constructor(store: FeedStore, wakeUps: WakeUps) {
    this.#store = store;
    this.#wakeUps = wakeUps;
  }

  /** Returns NDJSON: the signals, then `{"next":…,"done":…}`. Throws `AppError`. */
  async read(query: FeedQuery, access: Access, gone: AbortSignal): Promise<string> {
    using _ = this.#places.take(access.place);
    const deskId = await this.#findDesk(query, access);
    const after = await this.#findStart(query, access, deskId);
    const until = performance.now() + query.waitMs;
    while (true) {
      const page = await this.#readPage(deskId, after, query.limit);
      // After reading, so that nothing is answered that was stored after a revoke.
      await access.recheck();
      const leftMs = until - performance.now();
      if (page.lines !== "" || leftMs <= 0 || this.#isStopping || gone.aborted) {
        return `${page.lines}${JSON.stringify({ next: page.next, done: page.isDone })}\n`;
      }
      await this.#wakeUps.sleep(deskId, Math.min(leftMs, RECHECK_MS), gone);
    }
  }

  /** From now on nobody waits. */
  stop(): void {
    this.#isStopping = true;
    this.#wakeUps.wakeAll();
  }

  /** A desk that the key may not read is answered like an unknown one. */
  async #findDesk({ desk }: FeedQuery, access: Access): Promise<number | null> {
    if (desk === null) return access.deskId;
    const found = await this.#store.findDeskId(desk);
    if (found !== null && (access.deskId === null || access.deskId === found)) return found;
    throw invalid({ desk: "unknown desk, or not one that this key may read" });
  }

  /**
   * Refuses an id that no stored signal has. After a restore from a backup a reader's cursor may be such an id,
   * and signals with lower ids may follow if the clock was set back: the reader would miss them.
   */
  async #findStart(
    { after }: FeedQuery,
    access: Access,
    deskId: number | null,
  ): Promise<string | null> {
    if (after === null) return null;
    if (after === NOW) return (await newestSignal(this.#store, deskId))?.id ?? null;
    if (await this.#store.hasSignal(access.deskId, after)) return after;
    throw invalid({
      after:
        "no stored signal has this id: was the database restored from a backup? Continue after an id that it has, see docs/feed.md",
    });
  }

  async #readPage(deskId: number | null, after: string | null, limit: number): Promise<Page> {
    let lines = "";
    let next = after;
    for (let left = limit; ;) {
      const { text, count, last, more } = await this.#turns.take(() =>
        this.#readChunk(deskId, next, Math.min(CHUNK.rows, left)),
      );
      lines += text;
      next = last ?? next;
      left -= count;
      if (more === null) return { lines, next, isDone: true };
      if (left === 0 || lines.length >= PAGE_UNITS_MAX) return { lines, next, isDone: false };
    }
  }

  async #readChunk(deskId: number | null, after: string | null, limit: number) {
    const { signals, more } = await this.#store.list({
      deskId,
      filter: everySignal,
      order: "oldest",
      after,
      limit,
      metadataUnitsMax: CHUNK.metadataUnits,
    });
    const text = signals.map(fileLines.ndjson).join("");
    return { text, count: signals.length, last: signals.at(-1)?.id ?? null, more };
  }
}

/**
 * The feed: signals in the order of storage, from a reader's cursor on. It keeps nothing about readers.
 * Ids strictly increase in the order of commits, and one connection sees every commit before the next: a
 * reader that continues after the last id that it has misses nothing, and gets nothing twice.
 */
import type { FeedStore } from "../domain/storage/feed.ts";
import { isStored, LOWEST_ID, newestSignalId } from "../domain/signal/chunks.ts";
import { Page } from "./page.ts";
import { type FeedQuery, invalid, NOW, readFeedQuery } from "./query.ts";
import { type Caller, ConcurrencyLimit } from "./concurrency.ts";
import type { CommitNotifier } from "./commit-notifier.ts";
import { Throttle } from "./throttle.ts";

/** How soon a revoked key ends a reader that waits. */
const RECHECK_MS = 1_000;
/** What a request costs the thread outside the throttle, mostly in Bun: measured, and rounded up. */
export const REQUEST_MS = 0.15;
/** A page of this size goes to the socket at once. A stream would double what the request costs. */
const SMALL_UNITS_MAX = 16_384;

/** What a reader may read. */
export interface Access extends Caller {
  /** Throws `unauthorized` if the key has ended. */
  readonly recheck: () => void | Promise<void>;
}

interface FeedRequest {
  /** The parameters, as in the URL after the `?`. */
  readonly search: string;
  /** False: `wait` has no effect. */
  readonly mayWait: boolean;
  readonly access: Access;
  /** Aborts when the client is gone. */
  readonly gone: AbortSignal;
  /** Gets an error after the answer has begun, which ends without its last line. */
  readonly onCut: (error: unknown) => void;
}

export class Feed {
  readonly #store: FeedStore;
  readonly #limit = new ConcurrencyLimit();
  readonly #throttle = new Throttle();
  readonly #commits: CommitNotifier;
  #isStopping = false;
  /** How many requests wait for signals. */
  waiting = 0;

  /** `commits`: told of what is stored. */
  constructor(store: FeedStore, commits: CommitNotifier) {
    this.#store = store;
    this.#commits = commits;
  }

  /**
   * Returns NDJSON: the signals, then `{"next":…,"done":…}`. Read a stream to its end or cancel it, because
   * the request counts as in progress until then. Throws `AppError`.
   */
  async read(request: FeedRequest): Promise<string | ReadableStream<Uint8Array>> {
    const { search, mayWait, access, gone, onCut } = request;
    using counted = new DisposableStack();
    counted.use(this.#limit.begin(access));
    const { deskId, after, limit, waitMs } = await this.#throttle.run(
      () => this.#begin(search, access),
      REQUEST_MS,
    );
    const page = new Page(this.#store, { deskId, after, limit });
    const readChunk = () => this.#readChunk(page, access);
    // Before reading, so that no signal is stored unnoticed between the two.
    using subscription = this.#commits.subscribe(deskId);
    using _others = mayWait && waitMs > 0 ? this.#store.watch() : null;
    const until = performance.now() + (mayWait ? waitMs : 0);
    while (true) {
      const first = await readChunk();
      const leftMs = until - performance.now();
      if (!page.isEmpty || leftMs <= 0 || this.#isStopping || gone.aborted) {
        if (page.isOver && first.length <= SMALL_UNITS_MAX) return first;
        return streamOf(page, first, { readChunk, onCut, counted: counted.move() });
      }
      this.waiting += 1;
      await subscription.wait(Math.min(leftMs, RECHECK_MS), gone);
      this.waiting -= 1;
    }
  }

  /** Answers the readers that wait, and lets no other wait. */
  stop(): void {
    this.#isStopping = true;
    this.#commits.wakeAll();
  }

  async #begin(search: string, access: Access) {
    const query = readFeedQuery(search);
    const deskId = await this.#findDesk(query, access);
    return { ...query, deskId, after: await this.#findStart(query, access, deskId) };
  }

  #readChunk(page: Page, access: Access): Promise<string> {
    return this.#throttle.run(async () => {
      const text = await page.readChunk();
      // After reading, so that nothing is answered that was stored after a revoke.
      await access.recheck();
      return text;
    });
  }

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
    if (after === NOW) {
      const newest = await newestSignalId(this.#store, deskId);
      return newest === LOWEST_ID ? null : newest;
    }
    if (await isStored(this.#store, access.deskId, after)) return after;
    throw invalid({
      after:
        "no stored signal has this id: was the database restored from a backup? Continue after an id that it has, see docs/feed.md",
    });
  }
}

interface Rest {
  readonly readChunk: () => Promise<string>;
  readonly onCut: (error: unknown) => void;
  /** Disposed of when the client has taken everything, or is gone. */
  readonly counted: DisposableStack;
}

/** Reads each chunk when the client has taken the one before: a client that does not read costs one chunk. */
function streamOf(page: Page, first: string, rest: Rest): ReadableStream<Uint8Array> {
  const { readChunk, onCut, counted } = rest;
  const encoder = new TextEncoder();
  let chunk: string | null = first;
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        try {
          if (chunk === null && !page.isOver) chunk = await readChunk();
          if (chunk !== null) {
            controller.enqueue(encoder.encode(chunk));
            chunk = null;
            return;
          }
        } catch (error) {
          counted.dispose();
          onCut(error);
          throw error;
        }
        counted.dispose();
        controller.close();
      },
      cancel: () => counted.dispose(),
    },
    // No chunk is read ahead.
    { highWaterMark: 0 },
  );
}

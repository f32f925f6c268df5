/**
 * Checkpoints off the commit path (docs/performance.md has what that gains). This thread copies the log
 * while the writer goes on, then once more what was added meanwhile. The writer copies the small rest
 * between two batches: only a log that is copied to its end can start again.
 */
import { type FromThread, Thread, type DatabaseLocation } from "./thread.ts";

export type ToCheckpointer = { readonly type: "checkpoint" } | { readonly type: "close" };

export type FromCheckpointer = { readonly type: "copied" } | { readonly type: "closed" };

/**
 * Log pages of 4 KiB that start a checkpoint: 4 MiB. With larger ones the writer's part, and so the
 * slowest answers, take longer, at the same throughput.
 */
const CHECKPOINT_PAGES = 1_024;
const PASSES = 2;

export interface CheckpointerEvents {
  /** Almost everything is copied: the writer copies the rest. */
  readonly onNearlyDone: () => void;
  readonly onFatal: (reason: string) => void;
}

export class Checkpointer {
  readonly #thread: Thread<ToCheckpointer, FromCheckpointer>;
  readonly #events: CheckpointerEvents;
  #startAtPages = CHECKPOINT_PAGES;
  #passesLeft = 0;
  #isFailed = false;
  #onClosed: (() => void) | null = null;

  private constructor(
    thread: Thread<ToCheckpointer, FromCheckpointer>,
    events: CheckpointerEvents,
  ) {
    this.#thread = thread;
    this.#events = events;
    thread.listen(
      (message) => this.#receive(message),
      (reason) => this.#fail(reason),
    );
  }

  static async start(where: DatabaseLocation, events: CheckpointerEvents): Promise<Checkpointer> {
    const thread = await Thread.start<ToCheckpointer, FromCheckpointer>(
      "checkpointer.worker.ts",
      where,
    );
    return new Checkpointer(thread, events);
  }

  /**
   * Call it after each commit, with the number of log pages that are not in the database yet. A reader may
   * prevent that some are copied: the next checkpoint then waits for as many new ones.
   */
  committed(logPagesToCopy: number): void {
    if (this.#passesLeft > 0 || this.#isFailed) return;
    this.#startAtPages = Math.min(this.#startAtPages, logPagesToCopy + CHECKPOINT_PAGES);
    if (logPagesToCopy < this.#startAtPages) return;
    this.#startAtPages = Number.POSITIVE_INFINITY;
    this.#passesLeft = PASSES;
    this.#thread.post({ type: "checkpoint" });
  }

  /** Waits for the end of a running pass. */
  async close(): Promise<void> {
    if (this.#isFailed) return;
    await new Promise<void>((resolve) => {
      this.#onClosed = resolve;
      this.#thread.post({ type: "close" });
    });
    this.#thread.end();
  }

  #receive(message: FromCheckpointer | FromThread): void {
    switch (message.type) {
      case "copied":
        this.#passesLeft -= 1;
        if (this.#onClosed !== null) break;
        if (this.#passesLeft > 0) this.#thread.post({ type: "checkpoint" });
        else this.#events.onNearlyDone();
        break;
      case "closed":
        this.#onClosed?.();
        break;
      case "fatal":
        this.#fail(message.reason);
        break;
      case "ready":
        break;
    }
  }

  #fail(reason: string): void {
    this.#isFailed = true;
    this.#onClosed?.();
    this.#events.onFatal(reason);
  }
}

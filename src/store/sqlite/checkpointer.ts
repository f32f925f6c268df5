/**
 * Checkpoints off the commit path. A checkpoint inside a commit holds everyone up for 25 to 40 ms at
 * 64 MiB of log. So a thread of its own copies the log while the writer goes on, then once more what
 * came meanwhile; the rest is little, and the writer copies it between two batches (about 1 ms), for
 * only a log that is copied to its end can start again. At 256 connections this took p99 from 27–31
 * ms to 18–21 ms, at the same throughput.
 */
import { type FromThread, Thread, type DatabaseLocation } from "./thread.ts";

export type ToCheckpointer = { readonly type: "checkpoint" } | { readonly type: "close" };

export type FromCheckpointer = { readonly type: "copied" } | { readonly type: "closed" };

/**
 * Pages of 4 KiB that a checkpoint waits for: 4 MiB. Larger checkpoints make the writer's part of them, and
 * so the slowest answers, longer, and give no more throughput.
 */
const CHECKPOINT_PAGES = 1_024;
const PASSES = 2;

export interface CheckpointerEvents {
  /** Almost everything is copied: it is the writer's turn. */
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
   * To be called after each commit, with the number of pages in the log that are not in the database yet.
   * A reader may keep some of them there: then the next checkpoint waits for as many pages more.
   */
  committed(logPagesToCopy: number): void {
    if (this.#passesLeft > 0 || this.#isFailed) return;
    this.#startAtPages = Math.min(this.#startAtPages, logPagesToCopy + CHECKPOINT_PAGES);
    if (logPagesToCopy < this.#startAtPages) return;
    this.#startAtPages = Number.POSITIVE_INFINITY;
    this.#passesLeft = PASSES;
    this.#thread.post({ type: "checkpoint" });
  }

  /** Lets a pass that is under way come to its end. */
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

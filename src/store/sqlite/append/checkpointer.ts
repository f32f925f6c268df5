/**
 * Checkpoints off the commit path (docs/performance.md has what that gains). This thread copies the log
 * while the writer goes on, then once more what was added meanwhile. The writer copies the small rest
 * between two batches: SQLite reuses a log only once all of it is copied.
 */
import { type DatabaseLocation, Thread } from "./thread.ts";

/**
 * Log pages of 4 KiB that start a checkpoint: 4 MiB. With more, the writer's part and so the slowest
 * answers take longer, and throughput is the same.
 */
const CHECKPOINT_PAGES = 1_024;

interface CheckpointerEvents {
  /** Almost everything is copied: the writer copies the rest. */
  readonly onNearlyDone: () => void;
  readonly onFatal: (reason: string) => void;
}

export class Checkpointer {
  readonly #thread: Thread;
  #startAtPages = CHECKPOINT_PAGES;
  #isRunning = false;

  private constructor(thread: Thread, { onNearlyDone, onFatal }: CheckpointerEvents) {
    this.#thread = thread;
    thread.listen((message) => {
      if (message.type === "fatal") onFatal(message.reason);
      if (message.type !== "checkpointed") return;
      this.#isRunning = false;
      onNearlyDone();
    });
  }

  static async start(where: DatabaseLocation, events: CheckpointerEvents): Promise<Checkpointer> {
    return new Checkpointer(await Thread.start("checkpointer", where), events);
  }

  /**
   * Call it after each commit, with the number of log pages that are not in the database yet. A reader may
   * keep some from being copied: the next checkpoint then waits for {@link CHECKPOINT_PAGES} more.
   */
  committed(logPagesToCopy: number): void {
    if (this.#isRunning) return;
    this.#startAtPages = Math.min(this.#startAtPages, logPagesToCopy + CHECKPOINT_PAGES);
    if (logPagesToCopy < this.#startAtPages) return;
    this.#startAtPages = Number.POSITIVE_INFINITY;
    this.#isRunning = true;
    this.#thread.post({ type: "checkpoint" });
  }

  /** Waits for the end of a running checkpoint. */
  close(): Promise<void> {
    return this.#thread.close();
  }
}

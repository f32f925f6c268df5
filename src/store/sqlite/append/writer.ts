/**
 * The HTTP thread's side of the writer: a bounded queue in front of the thread that commits.
 *
 * Signals that arrive while a batch is being committed become the next batch, so batches grow with the
 * load and with the duration of an fsync, without a timer. On a thread of its own the writer leaves the
 * HTTP thread free to answer while the disk is slow (docs/performance.md has the cost).
 */
import type { Appended, Submission } from "../../../domain/storage/append.ts";
import { Queue, type QueueOptions } from "../../records/queue.ts";
import { type DatabaseLocation, type FromThread, Thread } from "./thread.ts";

/**
 * Signals per message to the writer. One turn of the event loop may read many requests: sending them in
 * parts lets the writer commit the first while the others are parsed.
 */
const MESSAGE_SIGNALS_MAX = 32;

const PROBE_AFTER_MS = 5_000;

type WriterEvents = QueueOptions["events"] & {
  /** Nothing more will be committed. Called at most once. */
  readonly onFatal: (reason: string) => void;
  /** Called after each commit with the number of log pages that are not in the database yet. */
  readonly onCommitted: (logPagesToCopy: number) => void;
};

export class Writer {
  readonly queue: Queue;
  readonly #thread: Thread;
  readonly #events: WriterEvents;

  private constructor(thread: Thread, events: WriterEvents) {
    this.#thread = thread;
    this.#events = events;
    this.queue = new Queue({
      events,
      probe: () => thread.post({ type: "probe" }),
      probeAfterMs: PROBE_AFTER_MS,
      slow: "the disk does not answer, or another process has locked the database",
    });
    thread.listen((message) => this.#receive(message));
  }

  /** Starts the thread and waits until it has the database open. */
  static async start(where: DatabaseLocation, events: WriterEvents): Promise<Writer> {
    return new Writer(await Thread.start("writer", where), events);
  }

  append(submission: Submission): Promise<Appended> {
    const appended = this.queue.append(submission);
    if (this.queue.untaken === 1) setImmediate(() => this.#send());
    if (this.queue.untaken === MESSAGE_SIGNALS_MAX) this.#send();
    return appended;
  }

  /** Records when a key was used, between two batches. */
  recordUse(keyId: string, at: number): void {
    if (!this.queue.hasFailed) this.#thread.post({ type: "used", keyId, at });
  }

  /** Asks for a checkpoint between two batches. */
  checkpoint(): void {
    if (!this.queue.hasFailed) this.#thread.post({ type: "checkpoint" });
  }

  /** Resolves when every submission has an outcome and the database is closed. */
  async close(): Promise<void> {
    await this.queue.drain();
    if (!this.queue.hasFailed) await this.#thread.close();
  }

  /** Rejects all waiting and all later submissions. */
  fail(reason: string): void {
    if (this.queue.hasFailed) return;
    this.queue.fail(reason);
    this.#events.onFatal(reason);
  }

  /** After {@link fail}: resolves when the thread will commit nothing more. */
  abandon(): Promise<void> {
    return this.#thread.close();
  }

  /** Runs at the end of the event loop's turn, or as soon as a message is full. */
  #send(): void {
    const submissions = this.queue.take();
    if (submissions.length > 0) this.#thread.post({ type: "append", submissions });
  }

  #receive(message: FromThread): void {
    switch (message.type) {
      case "committed": {
        const { outcomes, durationMs, commitMs } = message;
        this.queue.settle(outcomes, { durationMs, commitMs });
        this.#events.onCommitted(message.logPagesToCopy);
        break;
      }
      case "probed":
        this.queue.probed(message.refusal);
        break;
      case "fatal":
        this.fail(message.reason);
        break;
      case "opened":
      case "checkpointed":
      case "closed":
        break;
    }
  }
}

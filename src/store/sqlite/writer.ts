/**
 * The HTTP thread's side of the writer: a bounded queue in front of the thread that commits.
 *
 * Whatever arrives while a batch is being committed becomes the next batch, so the batch grows with
 * the load and with the time that an fsync takes, and nobody waits for a timer.
 *
 * A thread of its own costs a lone client 0.16 ms, gives more throughput under load, and goes on answering
 * 401, 422 and 503 while the disk is slow (docs/performance.md).
 */
import { AppError } from "../../domain/errors.ts";
import type { Appended, ServerStorageEvents, Submission } from "../../domain/storage.ts";
import type { Outcome } from "./batch.ts";
import { type FromThread, Thread, type DatabaseLocation } from "./thread.ts";

export type ToWriter =
  | { readonly type: "append"; readonly submissions: readonly Submission[] }
  | { readonly type: "checkpoint" }
  | { readonly type: "close" };

export type FromWriter =
  | {
      readonly type: "committed";
      readonly outcomes: readonly Outcome[];
      readonly logPagesToCopy: number;
    }
  | { readonly type: "closed" };

/** Submissions that wait for a batch or are in one. At 30,000/s this is a third of a second. */
export const QUEUE_SIGNALS_MAX = 10_000;
/** Their metadata, counted in UTF-16 units: bounds the memory that a queue of large bodies takes. */
export const QUEUE_METADATA_UNITS_MAX = 32 * 1024 * 1024;
/**
 * Signals that cross to the writer in one message. Many requests are read in one turn of the event
 * loop; sending them in parts lets the writer commit the first ones while the others are parsed.
 */
const MESSAGE_SIGNALS_MAX = 32;

/** How long readiness stays red after a batch was refused and nothing has come since. */
const PROBLEM_REMEMBERED_MS = 10_000;

/** A disk that takes longer than this for one commit is in trouble. */
const COMMIT_MS_MAX = 4_000;

interface Waiting {
  readonly submission: Submission;
  readonly resolve: (appended: Appended) => void;
  readonly reject: (error: Error) => void;
}

export interface WriterEvents extends Omit<ServerStorageEvents, "onWarning"> {
  /** After each commit: how many pages of the log are not in the database yet. */
  readonly onCommitted: (logPagesToCopy: number) => void;
}

export class Writer {
  readonly #thread: Thread<ToWriter, FromWriter>;
  readonly #events: WriterEvents;
  /** Everything without an outcome, in order; the last `#unsent` of it has not gone to the thread. */
  #waiting: Waiting[] = [];
  #unsent = 0;
  #metadataUnits = 0;
  #failure: string | null = null;
  #lastProblem: { reason: string; at: number } | null = null;
  /** When the oldest of the waiting ones came to its turn. */
  #busySince = 0;
  #onDrained: (() => void) | null = null;
  #onClosed: (() => void) | null = null;

  private constructor(thread: Thread<ToWriter, FromWriter>, events: WriterEvents) {
    this.#thread = thread;
    this.#events = events;
    thread.listen(
      (message) => this.#receive(message),
      (reason) => this.fail(reason),
    );
  }

  /** Starts the thread and waits until it has the database open. */
  static async start(where: DatabaseLocation, events: WriterEvents): Promise<Writer> {
    const thread = await Thread.start<ToWriter, FromWriter>("writer.worker.ts", where);
    return new Writer(thread, events);
  }

  /**
   * Why the writer does not store at present; null while it does. A passing problem is forgotten after
   * a while: a load balancer that sends nothing because of it would otherwise never see it end.
   */
  get problem(): string | null {
    if (this.#failure !== null) return this.#failure;
    const now = performance.now();
    if (this.depth > 0 && now - this.#busySince > COMMIT_MS_MAX) {
      return `no commit has ended for ${Math.floor((now - this.#busySince) / 1_000)} s: look at the disk`;
    }
    if (this.#lastProblem === null) return null;
    const { reason, at } = this.#lastProblem;
    return now - at < PROBLEM_REMEMBERED_MS ? reason : null;
  }

  /** Submissions that have no outcome yet. */
  get depth(): number {
    return this.#waiting.length;
  }

  append(submission: Submission): Promise<Appended> {
    const units = metadataUnits(submission);
    if (
      this.#failure !== null ||
      this.depth >= QUEUE_SIGNALS_MAX ||
      this.#metadataUnits + units > QUEUE_METADATA_UNITS_MAX
    ) {
      return Promise.reject(unavailable());
    }
    this.#metadataUnits += units;
    if (this.depth === 0) this.#busySince = performance.now();
    return new Promise((resolve, reject) => {
      this.#waiting.push({ submission, resolve, reject });
      this.#unsent += 1;
      if (this.#unsent === 1) setImmediate(() => this.#send());
      if (this.#unsent === MESSAGE_SIGNALS_MAX) this.#send();
    });
  }

  /** Has the thread copy the log's last pages into the database between two batches. */
  checkpoint(): void {
    if (this.#failure === null) this.#thread.post({ type: "checkpoint" });
  }

  /** Resolves when every submission has its outcome, and the thread has closed the database. */
  async close(): Promise<void> {
    if (this.#failure !== null) return;
    if (this.depth > 0) await new Promise<void>((resolve) => (this.#onDrained = resolve));
    if (this.#failure !== null) return;
    await new Promise<void>((resolve) => {
      this.#onClosed = resolve;
      this.#thread.post({ type: "close" });
    });
    this.#thread.end();
  }

  /** At the end of the event loop's turn, or sooner when there is enough for the writer to begin with. */
  #send(): void {
    const unsent = this.#unsent === 0 ? [] : this.#waiting.slice(-this.#unsent);
    this.#unsent = 0;
    if (unsent.length === 0) return;
    this.#thread.post({ type: "append", submissions: unsent.map(({ submission }) => submission) });
  }

  #receive(message: FromWriter | FromThread): void {
    switch (message.type) {
      case "committed":
        this.#settle(message.outcomes);
        this.#events.onCommitted(message.logPagesToCopy);
        break;
      case "fatal":
        this.fail(message.reason);
        break;
      case "closed":
        this.#onClosed?.();
        break;
      case "ready":
        break;
    }
  }

  #settle(outcomes: readonly Outcome[]): void {
    const settled = this.#waiting.splice(0, outcomes.length);
    this.#busySince = performance.now();
    for (const [index, waiting] of settled.entries()) {
      this.#metadataUnits -= metadataUnits(waiting.submission);
      answer(waiting, outcomes[index]);
    }
    this.#report(outcomes);
    if (this.depth === 0) this.#onDrained?.();
  }

  /** Tells the operator once a batch, not once a signal. */
  #report(outcomes: readonly Outcome[]): void {
    const isStoring = outcomes.some(({ kind }) => kind === "stored" || kind === "duplicate");
    const bad = outcomes.filter(
      (outcome) => outcome.kind === "unavailable" || outcome.kind === "failed",
    );
    const first = bad[0];
    if (first !== undefined) {
      const { kind, reason } = first;
      const obstacle = kind === "unavailable" ? first.obstacle : null;
      this.#events.onProblem({ kind, reason, obstacle, signals: bad.length });
    }
    if (isStoring) this.#recover();
    else if (first?.kind === "unavailable") {
      this.#lastProblem = { reason: first.reason, at: performance.now() };
    }
  }

  #recover(): void {
    if (this.#lastProblem === null) return;
    this.#lastProblem = null;
    this.#events.onRecovered();
  }

  /** From now on nothing is taken, and nothing that waits is answered with success. */
  fail(reason: string): void {
    if (this.#failure !== null) return;
    this.#failure = reason;
    const lost = this.#waiting;
    this.#waiting = [];
    this.#unsent = 0;
    for (const waiting of lost) waiting.reject(unavailable());
    this.#onDrained?.();
    this.#onClosed?.();
    this.#events.onFatal(reason);
  }
}

function answer(waiting: Waiting, outcome: Outcome | undefined): void {
  switch (outcome?.kind) {
    case "stored":
      waiting.resolve({ deduped: false, id: outcome.id });
      break;
    case "duplicate":
      waiting.resolve({ deduped: true, id: outcome.id, differs: outcome.differs });
      break;
    case "unauthorized":
      waiting.reject(new AppError("unauthorized"));
      break;
    case "unavailable":
      waiting.reject(unavailable());
      break;
    // Not an AppError: the client is told nothing of it, and the log all of it.
    case "failed":
      waiting.reject(new Error(outcome.reason));
      break;
    case undefined:
      waiting.reject(new Error("the writer gave no outcome"));
      break;
  }
}

function unavailable(): AppError {
  return new AppError("unavailable", { retryAfterS: 1 });
}

function metadataUnits({ signal }: Submission): number {
  return signal.metadata?.length ?? 0;
}

/**
 * The HTTP thread's side of the writer: a bounded queue in front of the thread that commits.
 *
 * Signals that arrive while a batch is being committed become the next batch, so batches grow with the
 * load and with the duration of an fsync, without a timer. On a thread of its own the writer leaves the
 * HTTP thread free to answer while the disk is slow (docs/performance.md has the cost).
 */
import { AppError } from "../../../domain/errors.ts";
import type { Appended, Outage, Submission } from "../../../domain/storage/append.ts";
import type { ServerStorageEvents } from "../../../domain/storage/storage.ts";
import type { Newest } from "../log/next-step.ts";
import type { Outcome, Refusal } from "./batch.ts";
import { type Committed, type DatabaseLocation, Thread } from "./thread.ts";

/** Submissions without an outcome. At 30,000/s this is a third of a second. */
export const QUEUE_SIGNALS_MAX = 10_000;
/** Limits the memory of a queue of large bodies: their metadata, in UTF-16 units. */
export const QUEUE_METADATA_UNITS_MAX = 32 * 1024 * 1024;
/**
 * Signals per message to the writer. One turn of the event loop may read many requests: sending them in
 * parts lets the writer commit the first while the others are parsed.
 */
const MESSAGE_SIGNALS_MAX = 32;

/**
 * Signals end an outage by being stored. Without one for this long, the thread finds out: a load balancer that
 * sends nothing because of the outage would otherwise never see its end.
 */
const PROBE_AFTER_MS = 5_000;

/** A commit that takes longer is an outage. */
const COMMIT_MS_MAX = 4_000;

interface Waiting {
  readonly submission: Submission;
  readonly resolve: (appended: Appended) => void;
  readonly reject: (error: Error) => void;
}

interface WriterEvents extends Omit<ServerStorageEvents, "onFatal" | "onWarning"> {
  /** Nothing more will be committed. Called at most once. */
  readonly onFatal: (reason: string) => void;
  /** Called after each commit with the number of log pages that are not in the database yet. */
  readonly onCommitted: (logPagesToCopy: number) => void;
}

export class Writer {
  readonly #thread: Thread;
  readonly #events: WriterEvents;
  /** Submissions without an outcome, in order; the last `#unsent` were not sent to the thread yet. */
  #waiting: Waiting[] = [];
  #unsent = 0;
  #metadataUnits = 0;
  #failure: Outage | null = null;
  #outage: Outage | null = null;
  #probe: Timer | undefined;
  /** When the current commit began. */
  #busySince = 0;
  #onDrained: (() => void) | null = null;
  #newest: Newest | null = null;

  private constructor(thread: Thread, events: WriterEvents) {
    this.#thread = thread;
    this.#events = events;
    thread.listen((message) => {
      if (message.type === "committed") this.#committed(message);
      else if (message.type === "fatal") this.fail(message.reason);
      else if (message.type !== "probed") return;
      else if (message.refusal === null) this.#recover();
      else this.#refused(message.refusal);
    });
  }

  /** Starts the thread and waits until it has the database open. */
  static async start(where: DatabaseLocation, events: WriterEvents): Promise<Writer> {
    return new Writer(await Thread.start("writer", where), events);
  }

  /** See `ServerStorage`. */
  get outage(): Outage | null {
    const current = this.#failure ?? this.#outage;
    const commitMs = this.depth === 0 ? 0 : performance.now() - this.#busySince;
    if (current !== null || commitMs <= COMMIT_MS_MAX) return current;
    return {
      since: Math.round(performance.timeOrigin + this.#busySince),
      reason: "the disk does not answer, or another process has locked the database",
    };
  }

  /** Of the signals that were stored since the start. */
  get newest(): Newest | null {
    return this.#newest;
  }

  /** Submissions that have no outcome yet. */
  get depth(): number {
    return this.#waiting.length;
  }

  /** The share of the queue that is taken: at 1, submissions are refused. */
  get usage(): number {
    return Math.max(this.depth / QUEUE_SIGNALS_MAX, this.#metadataUnits / QUEUE_METADATA_UNITS_MAX);
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

  /** Records when a key was used, between two batches. */
  recordUse(keyId: string, at: number): void {
    if (this.#failure === null) this.#thread.post({ type: "used", keyId, at });
  }

  /** Asks for a checkpoint between two batches. */
  checkpoint(): void {
    if (this.#failure === null) this.#thread.post({ type: "checkpoint" });
  }

  /** Resolves when every submission has an outcome and the database is closed. */
  async close(): Promise<void> {
    clearTimeout(this.#probe);
    if (this.#failure !== null) return;
    if (this.depth > 0) await new Promise<void>((resolve) => (this.#onDrained = resolve));
    if (this.#failure === null) await this.#thread.close();
  }

  /** After {@link fail}: resolves when the thread will commit nothing more. */
  abandon(): Promise<void> {
    return this.#thread.close();
  }

  /** Runs at the end of the event loop's turn, or as soon as a message is full. */
  #send(): void {
    const unsent = this.#unsent === 0 ? [] : this.#waiting.slice(-this.#unsent);
    this.#unsent = 0;
    if (unsent.length === 0) return;
    this.#thread.post({ type: "append", submissions: unsent.map(({ submission }) => submission) });
  }

  #committed({ outcomes, durationMs, commitMs, logPagesToCopy }: Committed): void {
    this.#settle(outcomes);
    if (outcomes.some(isKept)) {
      this.#events.onTransaction({ signals: outcomes.length, durationMs, commitMs });
    }
    this.#events.onCommitted(logPagesToCopy);
  }

  #settle(outcomes: readonly Outcome[]): void {
    const settled = this.#waiting.splice(0, outcomes.length);
    this.#busySince = performance.now();
    const desks = new Set<number>();
    for (const [index, waiting] of settled.entries()) {
      this.#metadataUnits -= metadataUnits(waiting.submission);
      answer(waiting, outcomes[index]);
      const outcome = outcomes[index];
      if (outcome?.kind !== "stored") continue;
      const { deskId, receivedAt } = waiting.submission;
      desks.add(deskId);
      this.#newest = { id: outcome.id, receivedAt };
    }
    if (desks.size > 0) this.#events.onStored(desks);
    this.#report(outcomes);
    if (this.depth === 0) this.#onDrained?.();
  }

  /** Reports once per batch, not once per signal. */
  #report(outcomes: readonly Outcome[]): void {
    const isStoring = outcomes.some(isKept);
    const bad = outcomes.filter(
      (outcome) => outcome.kind === "unavailable" || outcome.kind === "failed",
    );
    const first = bad[0];
    if (first !== undefined) {
      const { obstacle, error } =
        first.kind === "unavailable" ? first : { obstacle: null, error: first.reason };
      const { kind, reason } = first;
      this.#events.onProblem({ kind, reason, error, obstacle, signals: bad.length });
    }
    if (isStoring) this.#recover();
    else if (first?.kind === "unavailable") this.#refused(first);
  }

  #refused({ reason }: Refusal): void {
    this.#outage = { since: this.#outage?.since ?? Date.now(), reason };
    clearTimeout(this.#probe);
    this.#probe = setTimeout(() => this.#thread.post({ type: "probe" }), PROBE_AFTER_MS).unref();
  }

  #recover(): void {
    if (this.#outage === null) return;
    clearTimeout(this.#probe);
    this.#outage = null;
    this.#events.onRecovered();
  }

  /** Rejects all waiting and all later submissions. */
  fail(reason: string): void {
    if (this.#failure !== null) return;
    clearTimeout(this.#probe);
    this.#failure = { since: Date.now(), reason };
    const lost = this.#waiting;
    this.#waiting = [];
    this.#unsent = 0;
    for (const waiting of lost) waiting.reject(unavailable());
    this.#onDrained?.();
    this.#events.onFatal(reason);
  }
}

function isKept({ kind }: Outcome): boolean {
  return kind === "stored" || kind === "duplicate";
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
    // Not an AppError: the log gets the reason, the client only `internal_error`.
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

/** What every engine has in front of what commits: a bounded queue, the answers to what waits in it, and outages. */
import { AppError } from "../../domain/errors.ts";
import type { Signal } from "../../domain/signal/signal.ts";
import type {
  Appended,
  Outage,
  StorageProblem,
  Submission,
  Transaction,
} from "../../domain/storage/append.ts";
import type { ServerStorageEvents } from "../../domain/storage/storage.ts";

/** Submissions without an outcome. At 30,000/s this is a third of a second. */
export const QUEUE_SIGNALS_MAX = 10_000;
/** Limits the memory of a queue of large bodies: their metadata, in UTF-16 units. */
export const QUEUE_METADATA_UNITS_MAX = 32 * 1024 * 1024;

/** A commit that takes longer is an outage. */
const COMMIT_MS_MAX = 4_000;

/**
 * The outcome of one submission. `damaged`: the signal that it repeats is. `unavailable`: nothing was stored, and a retry
 * may succeed. `failed`: a defect of ours with this one submission.
 */
export type Outcome =
  | { readonly kind: "stored"; readonly id: string }
  | { readonly kind: "duplicate"; readonly id: string; readonly differs: (keyof Signal)[] }
  | { readonly kind: "damaged"; readonly id: string }
  | { readonly kind: "unauthorized" }
  | Refusal
  | { readonly kind: "failed"; readonly reason: string };

export interface Refusal {
  readonly kind: "unavailable";
  /** For people. */
  readonly reason: string;
  /** The engine's words. */
  readonly error: string;
  readonly obstacle: StorageProblem["obstacle"];
}

/** A signal that was stored; `receivedAt` in epoch milliseconds. */
export interface Newest {
  readonly id: string;
  readonly receivedAt: number;
}

interface Waiting {
  readonly submission: Submission;
  readonly resolve: (appended: Appended) => void;
  readonly reject: (error: Error) => void;
}

export interface QueueOptions {
  readonly events: Omit<ServerStorageEvents, "onFatal" | "onWarning">;
  /** Finds out whether signals can be stored, and calls {@link Queue.probed}. */
  readonly probe: () => void;
  /**
   * Signals end an outage by being stored. Without one for this long, it is probed: a load balancer that sends nothing
   * because of the outage would otherwise never see its end.
   */
  readonly probeAfterMs: number;
  /** Why a commit may take long, for people. */
  readonly slow: string;
}

export class Queue {
  readonly #options: QueueOptions;
  /** In order; the first `#taken` are being committed. */
  #waiting: Waiting[] = [];
  #taken = 0;
  #metadataUnits = 0;
  #failure: Outage | null = null;
  #outage: Outage | null = null;
  #probe: Timer | undefined;
  /** When the current commit began. */
  #busySince = 0;
  #onDrained: (() => void) | null = null;
  #newest: Newest | null = null;

  constructor(options: QueueOptions) {
    this.#options = options;
  }

  /** Submissions that have no outcome yet. */
  get depth(): number {
    return this.#waiting.length;
  }

  get untaken(): number {
    return this.#waiting.length - this.#taken;
  }

  /** The share of the queue that is taken: at 1, submissions are refused. */
  get usage(): number {
    return Math.max(this.depth / QUEUE_SIGNALS_MAX, this.#metadataUnits / QUEUE_METADATA_UNITS_MAX);
  }

  get hasFailed(): boolean {
    return this.#failure !== null;
  }

  /** See `QueueState`. */
  get outage(): Outage | null {
    const current = this.#failure ?? this.#outage;
    const commitMs = this.depth === 0 ? 0 : performance.now() - this.#busySince;
    if (current !== null || commitMs <= COMMIT_MS_MAX) return current;
    const since = Math.round(performance.timeOrigin + this.#busySince);
    return { since, reason: this.#options.slow };
  }

  /** Of the signals that were stored since the start. */
  get newest(): Newest | null {
    return this.#newest;
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
    });
  }

  /** Returns the next ones to commit. */
  take(signalsMax = Infinity): Submission[] {
    const taken = this.#waiting.slice(this.#taken, this.#taken + signalsMax);
    this.#taken += taken.length;
    return taken.map(({ submission }) => submission);
  }

  /** The outcomes of the first that were taken, in order, and the times of their transaction. */
  settle(outcomes: readonly Outcome[], times: Omit<Transaction, "signals">): void {
    const { events } = this.#options;
    const settled = this.#waiting.splice(0, outcomes.length);
    this.#taken -= settled.length;
    this.#busySince = performance.now();
    const desks = new Set<number>();
    for (const [index, waiting] of settled.entries()) {
      this.#metadataUnits -= metadataUnits(waiting.submission);
      const outcome = outcomes[index];
      answer(waiting, outcome);
      if (outcome?.kind === "damaged") events.onDamaged(outcome.id);
      if (outcome?.kind !== "stored") continue;
      const { deskId, receivedAt } = waiting.submission;
      desks.add(deskId);
      this.#newest = { id: outcome.id, receivedAt };
    }
    if (desks.size > 0) events.onStored(desks);
    this.#report(outcomes);
    if (this.depth === 0) this.#onDrained?.();
    if (outcomes.some(isKept)) events.onTransaction({ signals: outcomes.length, ...times });
  }

  /** Null: signals can be stored. */
  probed(refusal: Refusal | null): void {
    if (refusal === null) return this.#recover();
    const { obstacle, error, kind, reason } = refusal;
    // The log has the batch that an outage began with.
    const isKnown = this.#outage?.reason === reason;
    if (!isKnown) this.#options.events.onProblem({ kind, reason, error, obstacle, signals: 0 });
    this.#refused(refusal);
  }

  /** Resolves when every submission has an outcome. */
  async drain(): Promise<void> {
    clearTimeout(this.#probe);
    if (this.depth > 0) await new Promise<void>((resolve) => (this.#onDrained = resolve));
  }

  /** Rejects all waiting and all later submissions. */
  fail(reason: string): void {
    clearTimeout(this.#probe);
    this.#failure ??= { since: Date.now(), reason };
    const lost = this.#waiting;
    this.#waiting = [];
    this.#taken = 0;
    for (const waiting of lost) waiting.reject(unavailable());
    this.#onDrained?.();
  }

  /** Reports once per batch, not once per signal. */
  #report(outcomes: readonly Outcome[]): void {
    const bad = outcomes.filter(
      (outcome) => outcome.kind === "unavailable" || outcome.kind === "failed",
    );
    const first = bad[0];
    if (first !== undefined) {
      const { obstacle, error } =
        first.kind === "unavailable" ? first : { obstacle: null, error: first.reason };
      const { kind, reason } = first;
      this.#options.events.onProblem({ kind, reason, error, obstacle, signals: bad.length });
    }
    if (outcomes.some(isKept)) this.#recover();
    else if (first?.kind === "unavailable") this.#refused(first);
  }

  #refused({ reason }: Refusal): void {
    this.#outage = { since: this.#outage?.since ?? Date.now(), reason };
    clearTimeout(this.#probe);
    this.#probe = setTimeout(this.#options.probe, this.#options.probeAfterMs).unref();
  }

  #recover(): void {
    if (this.#outage === null) return;
    clearTimeout(this.#probe);
    this.#outage = null;
    this.#options.events.onRecovered();
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
    case "damaged":
      waiting.reject(new AppError("damaged_signal"));
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

/** What a submission or a read gets that the storage refuses for now. */
export function unavailable(): AppError {
  return new AppError("unavailable", { retryAfterS: 1 });
}

function metadataUnits({ signal }: Submission): number {
  return signal.metadata?.length ?? 0;
}

/** Stores signals: what arrives while a batch is being committed becomes the next one. */
import type { Appended, Submission } from "../../domain/storage/append.ts";
import { Queue, type QueueOptions, type Refusal, unavailable } from "../records/queue.ts";
import { Commits } from "./commits.ts";
import { isTransient, refusalOf } from "./failures.ts";

const BATCH_SIGNALS_MAX = 1_000;
const PROBE_AFTER_MS = 1_000;
/** Without signals, nothing else would notice that the database is away. */
const LOOK_MS = 2_000;

type WriterEvents = QueueOptions["events"] & {
  /** All signals up to this `seq` are committed. */
  readonly onCommitted: (seq: number) => void;
  /** The connection was given up. */
  readonly onLost: () => void;
  /** Reads what requests read. Returns null if that is possible. */
  readonly look: () => Promise<Refusal | null>;
};

type Barrier = PromiseWithResolvers<void>;

export class Writer {
  readonly queue: Queue;
  readonly #commits: Commits;
  readonly #events: WriterEvents;
  #barriers: Barrier[] = [];
  /** When read keys were used. */
  #uses = new Map<string, number>();
  #working: Promise<void> | null = null;
  #isClosed = false;
  readonly #looking = setInterval(() => void this.#look(), LOOK_MS);

  constructor(url: string, events: WriterEvents) {
    this.#events = events;
    this.#commits = new Commits(url, events.onLost);
    this.queue = new Queue({
      events,
      probe: () => void this.#probe(),
      probeAfterMs: PROBE_AFTER_MS,
      slow: "the database does not answer",
    });
  }

  append(submission: Submission): Promise<Appended> {
    const appended = this.queue.append(submission);
    this.#start();
    return appended;
  }

  /**
   * Resolves when a commit has returned that began later: what was visible before is then replicated. Without one
   * (a commit whose wait for the standby was cancelled is visible) a fail-over could take back what a reader has got.
   */
  barrier(): Promise<void> {
    const barrier = Promise.withResolvers<void>();
    this.#barriers.push(barrier);
    this.#start();
    return barrier.promise;
  }

  /** A read failed: returns what the client gets. */
  refused(error: unknown): unknown {
    if (!isTransient(error)) return error;
    if (!this.#isClosed) this.queue.probed(refusalOf(error));
    return unavailable();
  }

  /** Gives up the connection. */
  renew(): void {
    this.#commits.renew();
  }

  /** Before the next batch. */
  recordUse(keyId: string, at: number): void {
    this.#uses.set(keyId, at);
    this.#start();
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    clearInterval(this.#looking);
    await this.queue.drain();
    await this.#working;
    await this.#commits.close();
  }

  /** At the end of the event loop's turn. */
  #start(): void {
    this.#working ??= new Promise((resolve) => setImmediate(resolve)).then(() => this.#work());
  }

  async #work(): Promise<void> {
    for (;;) {
      const uses = this.#uses;
      const barriers = this.#barriers.splice(0);
      const batch = this.queue.take(BATCH_SIGNALS_MAX);
      if (uses.size + barriers.length + batch.length === 0) break;
      this.#uses = new Map();
      await this.#commits.recordUses(uses);
      const last = batch.length === 0 ? 0 : await this.#store(batch);
      await this.#release(barriers, { hasCommitted: last > 0 });
    }
    this.#working = null;
  }

  /** Returns the last `seq` that was given, or 0. */
  async #store(batch: readonly Submission[]): Promise<number> {
    const startedAt = performance.now();
    const { outcomes, last } = await this.#commits.commit(batch);
    const durationMs = performance.now() - startedAt;
    this.queue.settle(outcomes, { durationMs, commitMs: durationMs });
    if (last > 0) this.#events.onCommitted(last);
    return last;
  }

  async #release(
    barriers: readonly Barrier[],
    { hasCommitted }: { readonly hasCommitted: boolean },
  ): Promise<void> {
    if (barriers.length === 0) return;
    try {
      if (!hasCommitted) {
        // The batch has waited for long enough, for readers too.
        if (this.queue.outage !== null) throw unavailable();
        await this.#commits.commitNothing();
      }
      for (const { resolve } of barriers) resolve();
    } catch (error) {
      for (const { reject } of barriers) reject(this.refused(error));
    }
  }

  async #look(): Promise<void> {
    if (this.#working !== null || this.queue.outage !== null) return;
    const refusal = await this.#commits.look();
    if (refusal !== null) this.queue.probed(refusal);
  }

  async #probe(): Promise<void> {
    this.queue.probed((await this.#commits.probe()) ?? (await this.#events.look()));
  }
}

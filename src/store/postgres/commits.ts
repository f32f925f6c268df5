/** Commits batches, and decides what happens when one fails: see the table of failures in docs/scale.md. */
import type { Submission } from "../../domain/storage/append.ts";
import type { Outcome, Refusal } from "../records/queue.ts";
import { BatchCommitter, type Committed } from "./batch.ts";
import type { Pg } from "./connect.ts";
import {
  describeFailure,
  isAboutOneRow,
  isConflict,
  isTransient,
  isUnknown,
  refusalOf,
} from "./failures.ts";
import { Pool } from "./pool.ts";

/** From the first attempt on. */
const BATCH_MS_MAX = 10_000;

export class Commits {
  readonly #committer = new BatchCommitter();
  readonly #pool: Pool;
  /** How many commits may not have reached the standby. */
  #unsure = 0;

  constructor(url: string, onLost: () => void) {
    // One connection, so that a warning is about the statement that runs.
    this.#pool = new Pool(url, {
      max: 1,
      onLost,
      onWarning: (code) => {
        // "canceling wait for synchronous replication"
        if (code === "01000") this.#unsure += 1;
      },
    });
  }

  renew(): void {
    this.#pool.renew();
  }

  close(): Promise<void> {
    return this.#pool.close();
  }

  /** Never throws: it is skipped if the database is away. */
  async recordUses(uses: ReadonlyMap<string, number>): Promise<void> {
    if (uses.size === 0) return;
    await this.#pool.use((pg) => this.#committer.recordUses(pg, uses)).catch(() => {});
  }

  /** Never throws. */
  commit(batch: readonly Submission[]): Promise<Committed> {
    return this.#commit(batch, performance.now() + BATCH_MS_MAX, { isRepeat: false });
  }

  /** Waits for the standby like a batch. */
  commitNothing(): Promise<unknown> {
    return this.#sure((pg) => pg`SELECT pg_logical_emit_message(true, 'feed', '')`);
  }

  /** Reads what each batch reads. Returns null if that is possible. */
  look(): Promise<Refusal | null> {
    return this.#try((pg) => pg`SELECT keys_version FROM turn`);
  }

  /** Writes the row that each batch writes. Returns null if that is possible. */
  probe(): Promise<Refusal | null> {
    return this.#try((pg) => pg`UPDATE turn SET seq = seq`);
  }

  async #try(work: (pg: Pg) => PromiseLike<unknown>): Promise<Refusal | null> {
    try {
      await this.#sure(work);
      return null;
    } catch (error) {
      return refusalOf(error);
    }
  }

  async #commit(
    batch: readonly Submission[],
    end: number,
    { isRepeat }: { readonly isRepeat: boolean },
  ): Promise<Committed> {
    for (;;) {
      try {
        return await this.#sure((pg) => this.#committer.commit(pg, batch, { isRepeat }), end);
      } catch (error) {
        const isOver = performance.now() >= end;
        if (isConflict(error) && !isOver) continue;
        if (isAboutOneRow(error) && batch.length > 1) return this.#commitEach(batch, end);
        if (!isTransient(error))
          return all(batch, { kind: "failed", reason: describeFailure(error) });
        if (!isUnknown(error) || isRepeat || isOver) return all(batch, refusalOf(error));
        return this.#repeatKnown(batch, error, end);
      }
    }
  }

  async #sure<T>(work: (pg: Pg) => PromiseLike<T>, end?: number): Promise<T> {
    const before = this.#unsure;
    const result = await this.#pool.use(work, end);
    if (this.#unsure === before) return result;
    throw Object.assign(new Error("the standby has not confirmed the commit"), { code: "40003" });
  }

  /** The batch may be stored: signals without an id would be stored twice. */
  async #repeatKnown(batch: readonly Submission[], why: unknown, end: number): Promise<Committed> {
    const { outcomes, last } = await this.#commit(batch.filter(isKnown), end, { isRepeat: true });
    const rest = outcomes.values();
    const refusal = refusalOf(why);
    return {
      outcomes: batch.map((one) => (isKnown(one) ? (rest.next().value ?? refusal) : refusal)),
      last,
    };
  }

  /** Validation should have refused one of them: the others are not failed with it. */
  async #commitEach(batch: readonly Submission[], end: number): Promise<Committed> {
    const outcomes: Outcome[] = [];
    let last = 0;
    for (const one of batch) {
      const committed = await this.#commit([one], end, { isRepeat: false });
      outcomes.push(...committed.outcomes);
      last = Math.max(last, committed.last);
    }
    return { outcomes, last };
  }
}

function isKnown({ signal }: Submission): boolean {
  return signal.client_signal_id !== null;
}

function all(batch: readonly Submission[], outcome: Outcome): Committed {
  return { outcomes: batch.map(() => outcome), last: 0 };
}

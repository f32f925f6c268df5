/**
 * Group commit: a batch of submissions in one transaction and one fsync. Runs on the writer's thread,
 * on the only connection that writes signals.
 */
import type { Database } from "bun:sqlite";
import { IdSequence } from "../../domain/id.ts";
import type { Signal } from "../../domain/signal.ts";
import type { Submission } from "../../domain/store.ts";
import { describeFailure, isAboutOneRow, isTransient } from "./failures.ts";

/**
 * What became of one submission. `unavailable`: nothing was stored, and a retry may succeed.
 * `failed`: a defect of ours with this one submission.
 */
export type Outcome =
  | { readonly kind: "stored"; readonly id: string }
  | { readonly kind: "duplicate"; readonly id: string; readonly differs: (keyof Signal)[] }
  | { readonly kind: "unauthorized" }
  | { readonly kind: "unavailable"; readonly reason: string }
  | { readonly kind: "failed"; readonly reason: string };

/** After this nothing is known about the disk's state: the process must end and be started anew. */
export class FatalStorageError extends Error {}

/** A key's last use is written at most this often, and only inside a transaction that runs anyway. */
const LAST_USED_INTERVAL_MS = 60_000;

interface KeyRow {
  readonly expires_at: number | null;
  readonly revoked_at: number | null;
}

const SIGNAL_COLUMNS = [
  "client_signal_id",
  "source",
  "type",
  "symbol",
  "side",
  "direction",
  "price",
  "quantity",
  "signal_time",
  "metadata",
] as const satisfies readonly (keyof Signal)[];

export class BatchCommitter {
  readonly #db: Database;
  readonly #ids: IdSequence;
  readonly #lastUsedWritten = new Map<string, number>();
  readonly #insert;
  readonly #findOriginal;
  readonly #findKey;
  readonly #touchKey;
  readonly #countDiffering;

  constructor(db: Database) {
    this.#db = db;
    const newest = db.query<{ id: string | null }, []>("SELECT max(id) AS id FROM signals").get();
    this.#ids = new IdSequence(newest?.id ?? null);
    this.#insert = db.query(
      `INSERT INTO signals (id, desk_id, key_id, received_at, ${SIGNAL_COLUMNS.join(", ")})
       VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
       ON CONFLICT (desk_id, client_signal_id) WHERE client_signal_id IS NOT NULL DO NOTHING`,
    );
    this.#findOriginal = db.query<Signal & { id: string }, [number, string | null]>(
      `SELECT id, ${SIGNAL_COLUMNS.join(", ")} FROM signals WHERE desk_id = ? AND client_signal_id = ?`,
    );
    this.#findKey = db.query<KeyRow, [string]>(
      "SELECT expires_at, revoked_at FROM api_keys WHERE id = ?",
    );
    this.#touchKey = db.query("UPDATE api_keys SET last_used_at = ? WHERE id = ?");
    this.#countDiffering = db.query(
      "UPDATE desks SET differing_duplicates = differing_duplicates + 1 WHERE id = ?",
    );
  }

  /**
   * Commits a batch and returns an outcome for each submission, in order; when it has returned, what
   * it calls stored is on disk. Throws {@link FatalStorageError} where the outcome is unknown.
   */
  commit(batch: readonly Submission[]): Outcome[] {
    try {
      return this.#transaction(batch);
    } catch (error) {
      if (error instanceof FatalStorageError) throw error;
      const reason = describeFailure(error);
      if (isTransient(error)) return batch.map(() => ({ kind: "unavailable", reason }));
      if (!isAboutOneRow(error)) throw new FatalStorageError(reason);
      // One submission spoils the batch, which our validation should have prevented: the others must
      // not suffer from it.
      if (batch.length > 1) return batch.flatMap((submission) => this.commit([submission]));
      return [{ kind: "failed", reason }];
    }
  }

  #transaction(batch: readonly Submission[]): Outcome[] {
    this.#db.run("BEGIN IMMEDIATE");
    try {
      const keys = new Map<string, KeyRow | null>();
      const outcomes = batch.map((submission) => this.#append(submission, keys));
      const used = this.#writeLastUsed(batch, outcomes);
      this.#commit();
      for (const [keyId, at] of used) this.#lastUsedWritten.set(keyId, at);
      return outcomes;
    } catch (error) {
      // Some failures have rolled back already.
      if (this.#db.inTransaction) this.#db.run("ROLLBACK");
      throw error;
    }
  }

  /**
   * A commit whose writes were refused has stored nothing. After any other failure, a failed fsync
   * above all, the rows may or may not be there after a restart, while later commits would succeed as
   * if nothing had happened (https://wiki.postgresql.org/wiki/Fsync_Errors).
   */
  #commit(): void {
    try {
      this.#db.run("COMMIT");
    } catch (error) {
      if (isTransient(error)) throw error;
      throw new FatalStorageError(describeFailure(error));
    }
  }

  #append(submission: Submission, keys: Map<string, KeyRow | null>): Outcome {
    if (!this.#isKeyValid(submission, keys)) return { kind: "unauthorized" };
    const { signal, deskId } = submission;
    const id = this.#ids.next(submission.receivedAt);
    const { changes } = this.#insert.run(
      id,
      deskId,
      submission.keyId,
      submission.receivedAt,
      signal.client_signal_id,
      signal.source,
      signal.type,
      signal.symbol,
      signal.side,
      signal.direction,
      signal.price,
      signal.quantity,
      signal.signal_time,
      signal.metadata,
    );
    if (changes === 1) return { kind: "stored", id };
    const original = this.#findOriginal.get(deskId, signal.client_signal_id);
    if (original === null) throw new Error("a conflict without an original");
    const differs = SIGNAL_COLUMNS.filter((column) => original[column] !== signal[column]);
    if (differs.length > 0) this.#countDiffering.run(deskId);
    return { kind: "duplicate", id: original.id, differs };
  }

  /**
   * Whether the key still authenticates, read inside the transaction: a revoke either committed
   * before it and is seen, or waits for its end. So nothing of a key commits after its revoke.
   */
  #isKeyValid({ keyId, receivedAt }: Submission, keys: Map<string, KeyRow | null>): boolean {
    let key = keys.get(keyId);
    if (key === undefined) {
      key = this.#findKey.get(keyId);
      keys.set(keyId, key);
    }
    if (key === null || key.revoked_at !== null) return false;
    return key.expires_at === null || receivedAt < key.expires_at;
  }

  /** Returns what it wrote, to be remembered once it is committed. */
  #writeLastUsed(
    batch: readonly Submission[],
    outcomes: readonly Outcome[],
  ): ReadonlyMap<string, number> {
    const used = new Map<string, number>();
    for (const [index, { keyId, receivedAt }] of batch.entries()) {
      if (used.has(keyId) || outcomes[index]?.kind === "unauthorized") continue;
      const written = this.#lastUsedWritten.get(keyId);
      // A clock that stepped back must not silence this for as long as the step was.
      if (written !== undefined && Math.abs(receivedAt - written) < LAST_USED_INTERVAL_MS) continue;
      this.#touchKey.run(receivedAt, keyId);
      used.set(keyId, receivedAt);
    }
    return used;
  }
}

/**
 * Group commit: a batch of submissions in one transaction and one fsync. Runs on the writer's thread,
 * on the only connection that writes signals.
 */
import type { Database, SQLQueryBindings } from "bun:sqlite";
import { IdSequence } from "../../domain/id.ts";
import { meansTheSame } from "../../domain/same-json.ts";
import type { Signal } from "../../domain/signal.ts";
import type { Submission } from "../../domain/store.ts";
import type { DedupeIndex, DedupeKey } from "./dedupe/index.ts";
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

/** In one statement, which costs each row less than one of its own: a quarter less for eight. */
const ROWS_A_STATEMENT = 8;

/** What a transaction has done so far; nothing of it counts before its commit. */
class Transaction {
  readonly keys = new Map<string, KeyRow | null>();
  /** In the order of storage. */
  readonly rows: Row[] = [];
  /** How many of them are in the table. */
  inserted = 0;
  readonly rowOfName = new Map<string, Row>();
}

/** A new signal. */
interface Row {
  readonly values: readonly SQLQueryBindings[];
  readonly key: DedupeKey | null;
  /** 0 until it is in the table. */
  seq: number;
}

interface Original extends Signal {
  readonly id: string;
}

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
  readonly #dedupe: DedupeIndex;
  readonly #ids: IdSequence;
  readonly #lastUsedWritten = new Map<string, number>();
  readonly #insertOne;
  readonly #insertSeveral;
  readonly #getOriginal;
  readonly #findKey;
  readonly #touchKey;
  readonly #countDiffering;

  constructor(db: Database, dedupe: DedupeIndex) {
    this.#db = db;
    this.#dedupe = dedupe;
    const newest = db.query<{ id: string | null }, []>("SELECT max(id) AS id FROM signals").get();
    this.#ids = new IdSequence(newest?.id ?? null);
    this.#insertOne = db.query(insertOf(1));
    this.#insertSeveral = db.query(insertOf(ROWS_A_STATEMENT));
    this.#getOriginal = db.query<Original, [number, number, string]>(
      `SELECT id, ${SIGNAL_COLUMNS.join(", ")} FROM signals
       WHERE seq = ? AND desk_id = ? AND client_signal_id = ?`,
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
      const transaction = new Transaction();
      const outcomes = batch.map((submission) => this.#append(submission, transaction));
      this.#insert(transaction);
      const used = this.#writeLastUsed(batch, outcomes);
      this.#commit();
      for (const { seq, key } of transaction.rows) this.#dedupe.add(seq, key);
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

  #append(submission: Submission, transaction: Transaction): Outcome {
    if (!this.#isKeyValid(submission, transaction.keys)) return { kind: "unauthorized" };
    const { deskId, signal } = submission;
    const { client_signal_id: clientId } = signal;
    const key = clientId === null ? null : this.#dedupe.keyOf(deskId, clientId);
    if (key !== null) {
      const original = this.#findOriginal(key, transaction);
      if (original !== null) return this.#repeat(deskId, signal, original);
    }
    return this.#store(submission, key, transaction);
  }

  /** The one look at whether a signal is new: among those of this transaction, and all before it. */
  #findOriginal(key: DedupeKey, transaction: Transaction): Original | null {
    const row = transaction.rowOfName.get(key.name);
    if (row !== undefined) this.#insert(transaction);
    const candidates = row === undefined ? this.#dedupe.candidates(key.hash) : [row.seq];
    for (const candidate of candidates) {
      const original = this.#getOriginal.get(candidate, key.deskId, key.clientSignalId);
      if (original !== null) return original;
    }
    return null;
  }

  #repeat(deskId: number, signal: Signal, original: Original): Outcome {
    const differs = SIGNAL_COLUMNS.filter((column) => !isSame(column, original, signal));
    if (differs.length > 0) this.#countDiffering.run(deskId);
    return { kind: "duplicate", id: original.id, differs };
  }

  #store(submission: Submission, key: DedupeKey | null, transaction: Transaction): Outcome {
    const { signal } = submission;
    const id = this.#ids.next(submission.receivedAt);
    const { deskId, keyId, receivedAt } = submission;
    const columns = SIGNAL_COLUMNS.map((column) => signal[column]);
    const row = { values: [id, deskId, keyId, receivedAt, ...columns], key, seq: 0 };
    transaction.rows.push(row);
    if (key !== null) transaction.rowOfName.set(key.name, row);
    return { kind: "stored", id };
  }

  /** Puts into the table what is not in it yet. */
  #insert(transaction: Transaction): void {
    const { rows } = transaction;
    while (transaction.inserted < rows.length) {
      const first = transaction.inserted;
      const isSeveral = rows.length - first >= ROWS_A_STATEMENT;
      const some = rows.slice(first, first + (isSeveral ? ROWS_A_STATEMENT : 1));
      const statement = isSeveral ? this.#insertSeveral : this.#insertOne;
      const { lastInsertRowid } = statement.run(...some.flatMap(({ values }) => values));
      for (const [index, row] of some.entries()) {
        row.seq = Number(lastInsertRowid) - some.length + 1 + index;
      }
      transaction.inserted += some.length;
    }
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

/** Metadata is stored as text, and is the same when it means the same JSON. */
function isSame(column: keyof Signal, { [column]: one }: Signal, { [column]: other }: Signal) {
  if (one === other) return true;
  if (column !== "metadata" || one === null || other === null) return false;
  return meansTheSame(String(one), String(other));
}

function insertOf(rows: number): string {
  const columns = ["id", "desk_id", "key_id", "received_at", ...SIGNAL_COLUMNS];
  const row = `(${columns.map(() => "?").join(", ")})`;
  return `INSERT INTO signals (${columns.join(", ")}) VALUES ${Array(rows).fill(row).join(", ")}`;
}

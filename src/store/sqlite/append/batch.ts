/**
 * Group commit: stores a batch of submissions in one transaction with one fsync. Runs on the writer's
 * thread, on the only connection that writes signals.
 */
import type { Database, SQLQueryBindings } from "bun:sqlite";
import { type HashedSignal, hashOf, isIntact } from "../../../domain/signal/hash.ts";
import { IdSequence } from "../../../domain/signal/id.ts";
import { fieldNames } from "../../../domain/signal/signal.ts";
import type { Submission } from "../../../domain/storage/append.ts";
import {
  differencesOf,
  FIND_KEY,
  isUseDue,
  type KeyAtWork,
  mayStore,
} from "../../records/append.ts";
import type { Outcome, Refusal } from "../../records/queue.ts";
import { BlockWriter } from "./blocks.ts";
import {
  describeFailure,
  explainTransient,
  isAboutOneRow,
  isRefusedWrite,
  isTransient,
} from "../files/failures.ts";
import { readVersion } from "../files/migrate.ts";

/** The state of the disk is unknown: the process must end and be started again. */
class FatalStorageError extends Error {}

/** Rows per INSERT statement. Each statement has a fixed cost: eight rows cost a quarter less than eight statements. */
const STATEMENT_ROWS = 8;

/** As many pages as the largest signal takes: on a full disk, a few may fit where a signal does not. */
const PROBE_PAGES = 20;

/** A submission with a valid key, and the id that it gets if it is not a duplicate. */
interface Candidate {
  readonly submission: Submission;
  /** Its place in the batch. */
  readonly index: number;
  readonly id: string;
}

export class BatchCommitter {
  /** How long the last COMMIT took; 0 if the last transaction did not get that far. */
  commitMs = 0;
  readonly #db: Database;
  readonly #ids: IdSequence;
  readonly #blocks: BlockWriter;
  readonly #insertOne;
  readonly #insertSeveral;
  readonly #findStored;
  readonly #findKey;
  readonly #touchKey;
  readonly #countDiffering;

  constructor(db: Database) {
    this.#db = db;
    const newest = db.query<{ id: string | null }, []>("SELECT max(id) AS id FROM signals").get();
    this.#ids = new IdSequence(newest?.id ?? null);
    this.#blocks = new BlockWriter(db);
    this.#insertOne = db.query(insertOf(1));
    this.#insertSeveral = db.query(insertOf(STATEMENT_ROWS));
    this.#findStored = db.query<HashedSignal, [number, string]>(
      `SELECT ${INSERTED_COLUMNS.join(", ")} FROM signals
       WHERE desk_id = ? AND client_signal_id = ?`,
    );
    this.#findKey = db.query<KeyAtWork, [string]>(FIND_KEY);
    this.#touchKey = db.query("UPDATE api_keys SET last_used_at = ? WHERE id = ?");
    this.#countDiffering = db.query(
      "UPDATE desks SET differing_duplicates = differing_duplicates + 1 WHERE id = ?",
    );
  }

  /**
   * Commits a batch and returns an outcome for each submission, in order. Signals that it reports as
   * stored are on disk. Throws {@link FatalStorageError} if the outcome is unknown.
   */
  commit(batch: readonly Submission[]): Outcome[] {
    try {
      return this.#transaction(() => this.#append(batch));
    } catch (error) {
      if (error instanceof FatalStorageError) throw error;
      if (isTransient(error)) {
        const refusal = refusalOf(error);
        return batch.map(() => refusal);
      }
      const reason = describeFailure(error);
      if (!isAboutOneRow(error)) throw new FatalStorageError(reason);
      // Validation should have refused one of the submissions: do not fail the others with it.
      if (batch.length > 1) return batch.flatMap((submission) => this.commit([submission]));
      return [{ kind: "failed", reason }];
    }
  }

  /** Returns null if signals can be stored. Changes nothing, but commits as if it did. */
  probe(): Refusal | null {
    try {
      const version = readVersion(this.#db);
      for (let page = 0; page < PROBE_PAGES; page += 1) {
        this.#transaction(() => this.#db.run(`PRAGMA user_version = ${version}`));
      }
      return null;
    } catch (error) {
      if (!isTransient(error)) throw error;
      return refusalOf(error);
    }
  }

  /**
   * In a transaction of its own. Skipped if the disk or a lock is in the way; any other failure is thrown. It waits for no
   * lock: signals wait behind it.
   */
  recordUse(keyId: string, at: number): void {
    const { timeout } = this.#db.query("PRAGMA busy_timeout").get() as { timeout: number };
    try {
      const key = this.#findKey.get(keyId);
      if (key === null || !isUseDue(key, at)) return;
      this.#db.run("PRAGMA busy_timeout = 0");
      this.#writeUse(keyId, key, at);
    } catch (error) {
      if (!isTransient(error)) throw error;
    } finally {
      this.#db.run(`PRAGMA busy_timeout = ${timeout}`);
    }
  }

  #transaction<T>(work: () => T): T {
    this.commitMs = 0;
    this.#db.run("BEGIN IMMEDIATE");
    try {
      const result = work();
      this.#commit();
      return result;
    } catch (error) {
      // Some failures have rolled back already.
      if (this.#db.inTransaction) this.#db.run("ROLLBACK");
      throw error;
    }
  }

  /**
   * A commit whose writes were refused has stored nothing. After any other failure, such as a failed
   * fsync, the rows may or may not be there after a restart, and yet later commits would succeed
   * (https://wiki.postgresql.org/wiki/Fsync_Errors).
   */
  #commit(): void {
    const startedAt = performance.now();
    try {
      this.#db.run("COMMIT");
      this.commitMs = performance.now() - startedAt;
    } catch (error) {
      if (isTransient(error)) throw error;
      throw new FatalStorageError(describeFailure(error));
    }
  }

  #append(batch: readonly Submission[]): Outcome[] {
    const keys = new Map<string, KeyAtWork | null>();
    const outcomes = batch.map((): Outcome => ({ kind: "unauthorized" }));
    const candidates: Candidate[] = [];
    for (const [index, submission] of batch.entries()) {
      const key = this.#keyOf(submission, keys);
      if (!mayStore(key, submission.receivedAt)) continue;
      const id = this.#ids.next(submission.receivedAt);
      candidates.push({ submission, index, id });
      this.#writeUse(submission.keyId, key, submission.receivedAt);
    }
    let lastSeq = 0;
    for (const rows of inStatements(candidates)) {
      const statement = rows.length === 1 ? this.#insertOne : this.#insertSeveral;
      const { changes, lastInsertRowid } = statement.run(...rows.flatMap(valuesOf));
      if (changes > 0) lastSeq = Number(lastInsertRowid);
      const areAllNew = changes === rows.length;
      for (const row of rows) outcomes[row.index] = areAllNew ? stored(row) : this.#lookUp(row);
    }
    this.#blocks.add(candidates, lastSeq);
    return outcomes;
  }

  /** After an insert that skipped some rows: compares the stored row's id with the candidate's. */
  #lookUp(candidate: Candidate): Outcome {
    const { deskId, signal } = candidate.submission;
    if (signal.client_signal_id === null) return stored(candidate);
    const found = this.#findStored.get(deskId, signal.client_signal_id);
    if (found === null) throw new Error("a skipped signal has no original");
    if (found.id === candidate.id) return stored(candidate);
    if (!isIntact(found)) return { kind: "damaged", id: found.id };
    const differs = differencesOf(found, signal);
    if (differs.length > 0) this.#countDiffering.run(deskId);
    return { kind: "duplicate", id: found.id, differs };
  }

  /** As this transaction sees it. */
  #keyOf({ keyId }: Submission, known: Map<string, KeyAtWork | null>): KeyAtWork | null {
    let key = known.get(keyId);
    if (key === undefined) {
      key = this.#findKey.get(keyId);
      known.set(keyId, key);
    }
    return key;
  }

  #writeUse(keyId: string, key: KeyAtWork, at: number): void {
    if (!isUseDue(key, at)) return;
    this.#touchKey.run(at, keyId);
    key.last_used_at = at;
  }
}

function refusalOf(error: unknown): Refusal {
  return {
    kind: "unavailable",
    reason: explainTransient(error),
    error: describeFailure(error),
    obstacle: isRefusedWrite(error) ? "disk" : "lock",
  };
}

const INSERTED_COLUMNS = ["id", "desk_id", "key_id", "received_at", ...fieldNames, "hash"];

function insertOf(rows: number): string {
  const row = `(${INSERTED_COLUMNS.map(() => "?").join(", ")})`;
  return `INSERT INTO signals (${INSERTED_COLUMNS.join(", ")}) VALUES ${Array(rows).fill(row).join(", ")}
          ON CONFLICT (desk_id, client_signal_id) DO NOTHING`;
}

/** In the order of {@link INSERTED_COLUMNS}. */
function valuesOf({ id, submission }: Candidate): SQLQueryBindings[] {
  const { deskId, keyId, receivedAt, signal } = submission;
  const fields = fieldNames.map((column) => signal[column]);
  return [id, deskId, keyId, receivedAt, ...fields, hashOf(id, submission)];
}

/** Splits candidates into groups of {@link STATEMENT_ROWS}, then the rest one by one. */
function* inStatements(candidates: readonly Candidate[]): Generator<readonly Candidate[]> {
  for (let at = 0; at < candidates.length;) {
    const count = candidates.length - at >= STATEMENT_ROWS ? STATEMENT_ROWS : 1;
    yield candidates.slice(at, at + count);
    at += count;
  }
}

function stored({ id }: Candidate): Outcome {
  return { kind: "stored", id };
}

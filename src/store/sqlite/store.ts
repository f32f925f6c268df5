/** The storage of a running server: looks up keys on this thread, and sends signals to the writer's. */
import type { Database } from "bun:sqlite";
import { AppError } from "../../domain/errors.ts";
import { hashKey } from "../../domain/key.ts";
import type {
  Appended,
  KeyOwner,
  ServerStorage,
  ServerStorageEvents,
  Submission,
} from "../../domain/storage.ts";
import { describeFailure, isDamage, isTransient } from "./failures.ts";
import { type FolderLock, lockFolder } from "./lock.ts";
import { openDatabase } from "./open.ts";
import { Checkpointer } from "./checkpointer.ts";
import type { DatabaseLocation } from "./thread.ts";
import { Writer } from "./writer.ts";

interface Parts {
  readonly lock: FolderLock;
  readonly db: Database;
  readonly writer: Writer;
  readonly checkpointer: Checkpointer | null;
}

export class SqliteStore implements ServerStorage {
  readonly #parts: Parts;
  readonly #ownersOfThisTurn = new Map<string, KeyOwner | null>();
  readonly #deskNames = new Map<number, string>();
  readonly #findKey;

  private constructor(parts: Parts) {
    this.#parts = parts;
    this.#findKey = parts.db.query<Omit<KeyOwner, "deskName">, [Uint8Array]>(
      "SELECT id AS keyId, desk_id AS deskId, expires_at, revoked_at FROM api_keys WHERE key_hash = ?",
    );
  }

  /** Throws `UserError` if another server has the folder, or the database cannot be opened. */
  static async open(where: DatabaseLocation, events: ServerStorageEvents): Promise<SqliteStore> {
    await using opened = new AsyncDisposableStack();
    // First, so that creating or upgrading the database fails here, with a `UserError`.
    const { dataDir, externalCheckpoints } = where;
    const { onWarning: onTightened } = events;
    const lock = lockFolder(dataDir, onTightened);
    opened.defer(() => lock.release());
    const db = openDatabase(dataDir, "reader", { externalCheckpoints, onTightened });
    opened.defer(() => db.close());
    const checkpointer = externalCheckpoints
      ? null
      : await Checkpointer.start(where, {
          onNearlyDone: () => writer.checkpoint(),
          onFatal: (reason) => writer.fail(reason),
        });
    opened.defer(() => checkpointer?.close());
    const onCommitted = (pages: number): void => checkpointer?.committed(pages);
    const writer = await Writer.start(where, { ...events, onCommitted });
    opened.move();
    return new SqliteStore({ lock, db, writer, checkpointer });
  }

  /**
   * Caches a key for one turn of the event loop: a look-up costs 9 µs under load, because each commit
   * empties this connection's page cache. A longer cache would have to be told of every revoke. The
   * writer checks the key again inside its transaction.
   */
  findOwner(key: string): KeyOwner | null {
    let owner = this.#ownersOfThisTurn.get(key);
    if (owner === undefined) {
      owner = this.#lookUp(hashKey(key));
      if (this.#ownersOfThisTurn.size === 0) setImmediate(() => this.#ownersOfThisTurn.clear());
      this.#ownersOfThisTurn.set(key, owner);
    }
    return owner;
  }

  #lookUp(keyHash: Uint8Array): KeyOwner | null {
    const row = this.#read(() => this.#findKey.get(keyHash));
    return row === null ? null : { ...row, deskName: this.#deskName(row.deskId) };
  }

  /** Answers `unavailable` if the database cannot be read, and ends the server if it is damaged. */
  #read<T>(work: () => T): T {
    try {
      return work();
    } catch (error) {
      if (isDamage(error)) this.#parts.writer.fail(describeFailure(error));
      if (isDamage(error) || isTransient(error)) {
        throw new AppError("unavailable", { retryAfterS: 1 });
      }
      throw error;
    }
  }

  append(submission: Submission): Promise<Appended> {
    return this.#parts.writer.append(submission);
  }

  hasDesks(): boolean {
    return this.#parts.db.query("SELECT 1 FROM desks LIMIT 1").get() !== null;
  }

  get writerProblem(): string | null {
    return this.#parts.writer.problem;
  }

  async close(): Promise<void> {
    const { lock, db, writer, checkpointer } = this.#parts;
    // The writer last: its checkpoint then waits for no reader.
    db.close();
    await checkpointer?.close();
    await writer.close();
    lock.release();
  }

  /** Looked up once: names never change. */
  #deskName(id: number): string {
    let name = this.#deskNames.get(id);
    if (name === undefined) {
      const row = this.#parts.db.query<{ name: string }, [number]>(
        "SELECT name FROM desks WHERE id = ?",
      );
      name = this.#read(() => row.get(id))?.name ?? String(id);
      this.#deskNames.set(id, name);
    }
    return name;
  }
}

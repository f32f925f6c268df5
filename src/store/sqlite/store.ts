/** The storage of a running server: looks up keys and reads on this thread, and sends signals to the writer's. */
import type { Database } from "bun:sqlite";
import { join } from "node:path";
import { AppError } from "../../domain/errors.ts";
import { hashKey, type KeyScope } from "../../domain/key/key.ts";
import type { Appended, KeyOwner, Outage, Submission } from "../../domain/storage/append.ts";
import type { Reader } from "../../domain/storage/feed.ts";
import type { FiguresQuery, StorageFigures } from "../../domain/storage/figures.ts";
import type { SignalReader } from "../../domain/storage/signals.ts";
import type { ServerStorage, ServerStorageEvents } from "../../domain/storage/storage.ts";
import { isUlid } from "../../domain/signal/id.ts";
import type { SignalList, SignalQuery, StoredSignal } from "../../domain/signal/stored-signal.ts";
import { MINUTE_MS } from "../../lib/text/time.ts";
import {
  DamageError,
  describeFailure,
  explainFailure,
  isDamage,
  isTransient,
} from "./files/failures.ts";
import { readFigures, readSizes } from "./read/figures.ts";
import { DATABASE_NAME } from "./files/folder.ts";
import { lockFolder } from "./files/lock.ts";
import { openDatabase } from "./files/open.ts";
import { Checkpointer } from "./append/checkpointer.ts";
import type { DatabaseLocation } from "./append/thread.ts";
import { nextStepAfter } from "./log/next-step.ts";
import { describeCutLog, hasLogMoved, isLogCut } from "./log/removed-log.ts";
import { Rescue } from "./log/rescue.ts";
import { hasMoved } from "./files/transaction.ts";
import { Writer } from "./append/writer.ts";
import { sqliteSql } from "./sql.ts";
import { signals } from "../records/signals/signals.ts";

/** How often the server looks whether the files of the database and the lock are still its own. */
const MOVED_INTERVAL_MS = 1_000;

interface Parts {
  readonly lock: Database;
  readonly db: Database;
  readonly writer: Writer;
  readonly checkpointer: Checkpointer | null;
  readonly rescue: Rescue;
  readonly watch: Timer;
}

export class SqliteStore implements ServerStorage {
  readonly #parts: Parts;
  readonly #ownersOfThisTurn = new Map<string, KeyOwner | null>();
  readonly #findKey;
  readonly #signals: SignalReader;
  /** Read key → when its last use was recorded. */
  readonly #reads = new Map<string, number>();

  private constructor(parts: Parts) {
    this.#parts = parts;
    this.#findKey = parts.db.query<KeyOwner | Reader, [Uint8Array, KeyScope]>(
      `SELECT api_keys.id AS keyId, desk_id AS deskId, name AS deskName, expires_at, revoked_at,
         archived_at AS desk_archived_at
       FROM api_keys LEFT JOIN desks ON desks.id = desk_id WHERE key_hash = ? AND scope = ?`,
    );
    this.#signals = signals(sqliteSql({ reader: parts.db }));
  }

  /** Throws `UserError` if another server has the folder, or the database cannot be opened. */
  static async open(where: DatabaseLocation, events: ServerStorageEvents): Promise<SqliteStore> {
    await using opened = new AsyncDisposableStack();
    // First, so that creating or upgrading the database fails here, with a `UserError`.
    const { dataDir, externalCheckpoints } = where;
    const { onWarning: onTightened } = events;
    const lock = lockFolder(dataDir, onTightened);
    opened.use(lock);
    const db = openDatabase(dataDir, "reader", { externalCheckpoints, onTightened });
    opened.use(db);
    const path = join(dataDir, DATABASE_NAME);
    refuseOtherId(db, path);
    const rescue = new Rescue(db, {
      onFatal: (reason) => events.onFatal(reason, nextStepAfter(reason, writer.newest)),
      onProblem: events.onProblem,
    });
    const onFatal = (reason: string): void => rescue.end(reason, () => writer.abandon());
    // The checkpointer needs the writer from its first moment on, the writer no checkpointer.
    let checkpointer: Checkpointer | null = null;
    const onCommitted = (pages: number): void => checkpointer?.committed(pages);
    const writer = await Writer.start(where, { ...events, onFatal, onCommitted });
    opened.defer(() => writer.close());
    if (!externalCheckpoints) {
      checkpointer = await Checkpointer.start(where, {
        onNearlyDone: () => writer.checkpoint(),
        onFatal: (reason) => writer.fail(reason),
      });
    }
    const watch = setInterval(() => failIfMoved(lock, db, writer), MOVED_INTERVAL_MS);
    opened.move();
    return new SqliteStore({ lock, db, writer, checkpointer, rescue, watch });
  }

  /**
   * Caches a key for one turn of the event loop: a look-up costs 9 µs under load, because each commit
   * empties this connection's page cache. A longer cache would have to be told of every revoke. The
   * writer checks the key again inside its transaction.
   */
  findOwner(key: string): KeyOwner | null {
    let owner = this.#ownersOfThisTurn.get(key);
    if (owner === undefined) {
      // A send key has a desk.
      owner = this.#read(() => this.#findKey.get(hashKey(key), "send")) as KeyOwner | null;
      if (this.#ownersOfThisTurn.size === 0) setImmediate(() => this.#ownersOfThisTurn.clear());
      this.#ownersOfThisTurn.set(key, owner);
    }
    return owner;
  }

  findReader(key: string): Reader | null {
    return this.#read(() => this.#findKey.get(hashKey(key), "read"));
  }

  /** The absolute value: a clock that was set back must not stop these writes. */
  recordRead(keyId: string, at: number): void {
    if (Math.abs(at - (this.#reads.get(keyId) ?? -Infinity)) < MINUTE_MS) return;
    this.#reads.set(keyId, at);
    this.#parts.writer.recordUse(keyId, at);
  }

  findDeskId(name: string): number | null {
    return this.#read(() => {
      const sql = "SELECT id FROM desks WHERE name = ?";
      return this.#parts.db.query<{ id: number }, [string]>(sql).get(name)?.id ?? null;
    });
  }

  list(query: SignalQuery): Promise<SignalList> {
    return this.#readAll(async () => this.#signals.list(query));
  }

  get(deskId: number | null, id: string): Promise<StoredSignal | null> {
    return this.#readAll(async () => this.#signals.get(deskId, id));
  }

  /** Answers `unavailable` if the database cannot be read, and ends the server if it is damaged. */
  #read<T>(work: () => T): T {
    try {
      return work();
    } catch (error) {
      throw this.#explain(error);
    }
  }

  async #readAll<T>(work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (error) {
      throw this.#explain(error);
    }
  }

  #explain(error: unknown): unknown {
    if (isDamage(error)) this.#parts.writer.fail(describeFailure(error));
    const isUnavailable = isDamage(error) || isTransient(error);
    return isUnavailable ? new AppError("unavailable", { retryAfterS: 1 }) : error;
  }

  append(submission: Submission): Promise<Appended> {
    return this.#parts.writer.append(submission);
  }

  hasDesks(): boolean {
    return this.#parts.db.query("SELECT 1 FROM desks LIMIT 1").get() !== null;
  }

  get queueDepth(): number {
    return this.#parts.writer.depth;
  }

  get queueUsage(): number {
    return this.#parts.writer.usage;
  }

  async figures(query: FiguresQuery): Promise<StorageFigures> {
    const { db } = this.#parts;
    const figures = this.#read(() => readFigures(db, query));
    return { ...figures, ...(await readSizes(db.filename)) };
  }

  get outage(): Outage | null {
    return this.#parts.writer.outage;
  }

  async close(): Promise<void> {
    const { lock, db, writer, checkpointer, rescue, watch } = this.#parts;
    clearInterval(watch);
    failIfMoved(lock, db, writer);
    await rescue.stop();
    // The writer last: its checkpoint then waits for no reader.
    db.close();
    await checkpointer?.close();
    await writer.close();
    lock.close();
  }
}

function failIfMoved(lock: Database, db: Database, writer: Writer): void {
  const path = db.filename;
  if (hasMoved(db)) {
    writer.fail(`the database file was replaced or removed while the server ran: ${path}`);
  } else if (hasLogMoved(db)) {
    writer.fail(
      `the write-ahead log was removed or replaced while the server ran: ${path}-wal, with its index ${path}-shm`,
    );
  } else if (isLogCut(db)) {
    writer.fail(describeCutLog(db));
  } else if (hasMoved(lock)) {
    writer.fail(
      `the lock file was replaced or removed while the server ran, so another server could use the folder: ${lock.filename}`,
    );
  }
}

/** The next id follows the newest one, so that must be a ULID. */
function refuseOtherId(db: Database, path: string): void {
  try {
    const newest = db.query<{ id: string | null }, []>("SELECT max(id) AS id FROM signals").get();
    if (newest?.id == null || isUlid(newest.id)) return;
  } catch (error) {
    throw explainFailure(error, path);
  }
  throw new DamageError(path, "the id of the newest signal is not a ULID");
}

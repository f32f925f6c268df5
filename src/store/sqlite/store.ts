/** The storage of a running server: looks up keys and reads on this thread, and sends signals to the writer's. */
import type { Database } from "bun:sqlite";
import { stat } from "node:fs/promises";
import { join } from "node:path";
import { hashKey, type KeyScope } from "../../domain/key/key.ts";
import { isUlid } from "../../domain/signal/id.ts";
import type { KeyOwner } from "../../domain/storage/append.ts";
import type { Reader } from "../../domain/storage/feed.ts";
import type { ServerStorage, ServerStorageEvents } from "../../domain/storage/storage.ts";
import { systemCode } from "../../lib/errors.ts";
import { FIND_OWNER, oncePerTurn } from "../records/append.ts";
import { unavailable } from "../records/queue.ts";
import { serving } from "../records/serving.ts";
import { Checkpointer } from "./append/checkpointer.ts";
import type { DatabaseLocation } from "./append/thread.ts";
import { Writer } from "./append/writer.ts";
import {
  DamageError,
  describeFailure,
  explainFailure,
  isDamage,
  isTransient,
} from "./files/failures.ts";
import { DATABASE_NAME } from "./files/folder.ts";
import { lockFolder } from "./files/lock.ts";
import { openDatabase } from "./files/open.ts";
import { removeAbandoned } from "./files/private-folder.ts";
import { hasMoved } from "./files/transaction.ts";
import { nextStepAfter } from "./log/next-step.ts";
import { describeCutLog, hasLogMoved, isLogCut } from "./log/removed-log.ts";
import { Rescue } from "./log/rescue.ts";
import { sqliteSql } from "./sql.ts";

/** How often the server looks whether the files of the database and the lock are still its own. */
const MOVED_INTERVAL_MS = 1_000;

interface Parts {
  readonly lock: Database;
  readonly db: Database;
  readonly writer: Writer;
  readonly checkpointer: Checkpointer | null;
  readonly rescue: Rescue;
}

/** Throws `UserError` if another server has the folder, or the database cannot be opened. */
export async function openServerStorage(
  where: DatabaseLocation,
  events: ServerStorageEvents,
): Promise<ServerStorage> {
  const parts = await openParts(where, events);
  const { db, writer } = parts;
  const failIfMoved = (): void => {
    const reason = whyMoved(parts);
    if (reason !== null) writer.fail(reason);
  };
  const watch = setInterval(failIfMoved, MOVED_INTERVAL_MS);

  /** Answers `unavailable` if the database cannot be read, and ends the server if it is damaged. */
  const explain = (error: unknown): unknown => {
    if (isDamage(error)) writer.fail(describeFailure(error));
    const isUnavailable = isDamage(error) || isTransient(error);
    return isUnavailable ? unavailable() : error;
  };
  const reading = serving(sqliteSql({ reader: db, explain }), events.onDamaged);

  return {
    ...reading,
    ...keysOf(db, explain),
    recordRead: (keyId, at) => writer.recordUse(keyId, at),
    // No other server has the folder.
    watch: () => ({ [Symbol.dispose]: () => {} }),
    notes: null,
    append: (submission) => writer.append(submission),
    queue: writer.queue,

    async figures(query) {
      const sizes = Promise.all([bytesOf(db.filename), bytesOf(`${db.filename}-wal`)]);
      const [found, [databaseBytes, logBytes]] = await Promise.all([reading.figures(query), sizes]);
      return { ...found, databaseBytes, logBytes };
    },

    async close() {
      clearInterval(watch);
      failIfMoved();
      await parts.rescue.stop();
      // The writer last: its checkpoint then waits for no reader.
      db.close();
      await parts.checkpointer?.close();
      await writer.close();
      parts.lock.close();
    },
  };
}

async function openParts(where: DatabaseLocation, events: ServerStorageEvents): Promise<Parts> {
  await using opened = new AsyncDisposableStack();
  // First, so that creating or upgrading the database fails here, with a `UserError`.
  const { dataDir, externalCheckpoints } = where;
  const { onWarning: onTightened } = events;
  const lock = lockFolder(dataDir, onTightened);
  opened.use(lock);
  // A drill that was killed has left a copy of the database.
  removeAbandoned(dataDir);
  const db = opened.use(openDatabase(dataDir, "reader", { externalCheckpoints, onTightened }));
  refuseOtherId(db, join(dataDir, DATABASE_NAME));
  const rescue = new Rescue(db, {
    onFatal: (reason) => events.onFatal(reason, nextStepAfter(reason, writer.queue.newest)),
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
  opened.move();
  return { lock, db, writer, checkpointer, rescue };
}

/**
 * A look-up costs 9 µs under load, because each commit empties this connection's page cache. The writer checks the key
 * again inside its transaction.
 */
function keysOf(
  db: Database,
  explain: (error: unknown) => unknown,
): Pick<ServerStorage, "findOwner" | "findReader"> {
  const findKey = db.query<KeyOwner | Reader, [Uint8Array, KeyScope]>(FIND_OWNER);
  const find = (key: string, scope: KeyScope): KeyOwner | Reader | null => {
    try {
      return findKey.get(hashKey(key), scope);
    } catch (error) {
      throw explain(error);
    }
  };
  return {
    // A send key has a desk.
    findOwner: oncePerTurn((key) => find(key, "send") as KeyOwner | null),
    findReader: (key) => find(key, "read"),
  };
}

/** 0 without such a file. The disk may be slow, but does not keep the thread waiting. */
async function bytesOf(path: string): Promise<number> {
  try {
    return (await stat(path)).size;
  } catch (error) {
    if (systemCode(error) === "ENOENT") return 0;
    throw error;
  }
}

/** Why the server must end: a file is no longer its own. Null if all are. */
function whyMoved({ lock, db }: Parts): string | null {
  const path = db.filename;
  if (hasMoved(db)) {
    return `the database file was replaced or removed while the server ran: ${path}`;
  }
  if (hasLogMoved(db)) {
    return `the write-ahead log was removed or replaced while the server ran: ${path}-wal, with its index ${path}-shm`;
  }
  if (isLogCut(db)) return describeCutLog(db);
  if (hasMoved(lock)) {
    return `the lock file was replaced or removed while the server ran, so another server could use the folder: ${lock.filename}`;
  }
  return null;
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

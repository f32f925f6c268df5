/**
 * Activity has a database file of its own, so that it and the signals never wait for each other's lock.
 * It is not worth an `fsync` or a repair.
 */
import { Database } from "bun:sqlite";
import { closeSync, openSync, rmSync } from "node:fs";
import { join } from "node:path";
import {
  type ActivityBatch,
  type ActivityOwner,
  type ActivityWidth,
  activityWidths,
  type Bucket,
  type KeyActivity,
  type Reject,
  REJECTS_KEPT,
  REPEATED_SIGNALS_KEPT,
  type Repeats,
  startOfBucket,
} from "../../domain/activity.ts";
import type { Activity } from "../../domain/storage.ts";
import activitySql from "./activity.sql" with { type: "text" };
import { describeFailure, isUnreadable } from "./failures.ts";
import { readVersion } from "./migrate.ts";
import { inTransaction } from "./transaction.ts";

export const ACTIVITY_NAME = "signalbox-activity.db";

/** A file of another version is replaced by an empty one. Raise it with each change of `activity.sql`. */
const VERSION = 2;
const WIDTHS = Object.keys(activityWidths) as ActivityWidth[];
/** Only this process writes to the file, but a person may read it, and be the last to close it. */
const BUSY_TIMEOUT_MS = 1_000;

type Values = Record<string, string | number | null>;

export class SqliteActivity implements Activity {
  readonly #path: string;
  readonly #onLost: (sentence: string) => void;
  #db: Database;

  /**
   * Never throws: a server starts without it. `onLost` gets a sentence about what cannot be read or
   * kept. The folder must exist.
   */
  constructor(dataDir: string, onLost: (sentence: string) => void) {
    this.#path = join(dataDir, ACTIVITY_NAME);
    this.#onLost = onLost;
    this.#db = this.#open();
  }

  close(): void {
    this.#db.close();
  }

  /**
   * Drops the activity of keys that this database does not have: after a restore, other desks may have the
   * same numbers. Call it first. If that is impossible now, warns instead.
   */
  keepKeysOf(database: Database): void {
    try {
      const keys = JSON.stringify(database.query("SELECT id, desk_id FROM api_keys").values());
      this.#attempt((db) => inTransaction(db, () => dropUnknownKeys(db, keys)));
    } catch (error) {
      this.#onLost(
        `the activity of unknown keys was not dropped from ${this.#path} (${describeFailure(error)}): it will be retried at the next start`,
      );
    }
  }

  write(batch: ActivityBatch): void {
    this.#attempt((db) => inTransaction(db, () => writeBatch(db, batch)));
  }

  buckets({ deskId, keyId }: ActivityOwner, width: ActivityWidth, from: number): Bucket[] {
    return this.#rows(
      `SELECT start, sum(stored) AS stored, sum(duplicate) AS duplicate, sum(rejected) AS rejected
       FROM buckets WHERE desk_id = $desk AND width_ms = $width AND start >= $from
         AND ($key IS NULL OR key_id = $key)
       GROUP BY start ORDER BY start`,
      { desk: deskId, key: keyId, ...since(from, width) },
    );
  }

  ofKeys(
    deskId: number,
    keyIds: readonly string[],
    from: number,
  ): ReadonlyMap<string, KeyActivity> {
    const rows = this.#rows<KeyActivity & { keyId: string }>(
      `SELECT key_id AS keyId, sum(stored + duplicate + rejected) AS requests,
         sum(rejected) AS rejected, sum(unauthorized) AS unauthorized, max(last_at) AS lastAt
       FROM buckets WHERE desk_id = $desk AND width_ms = $width AND start >= $from
         AND key_id IN (SELECT value FROM json_each($keys)) GROUP BY key_id`,
      { desk: deskId, keys: JSON.stringify(keyIds), ...since(from, "hour") },
    );
    return new Map(rows.map(({ keyId, ...activity }) => [keyId, activity]));
  }

  keysStillInUse(deskId: number, from: number, limit: number): string[] {
    return this.#rows<{ key_id: string }>(
      `SELECT key_id FROM buckets
       WHERE desk_id = $desk AND width_ms = $width AND start >= $from AND unauthorized > 0
       GROUP BY key_id ORDER BY max(last_at) DESC LIMIT $limit`,
      { desk: deskId, limit, ...since(from, "hour") },
    ).map(({ key_id }) => key_id);
  }

  rejects({ deskId, keyId }: ActivityOwner, before: string | null, limit: number): Reject[] {
    return this.#rows<{ reject: string }>(
      `SELECT reject FROM rejects
       WHERE desk_id = $desk AND ($before IS NULL OR request_id < $before)
         AND ($key IS NULL OR key_id = $key)
       ORDER BY request_id DESC LIMIT $limit`,
      { desk: deskId, before, key: keyId, limit },
    ).map(({ reject }) => JSON.parse(reject) as Reject);
  }

  repeatsOf(deskId: number, signalId: string): Repeats | null {
    const [row] = this.#rows<Omit<Repeats, "differs"> & { differs: string }>(
      `SELECT duplicates, differing, differs, last_at AS lastAt FROM repeats
       WHERE desk_id = $desk AND signal_id = $signal`,
      { desk: deskId, signal: signalId },
    );
    return row === undefined ? null : { ...row, differs: JSON.parse(row.differs) as string[] };
  }

  #rows<Row>(sql: string, values: Values): Row[] {
    return this.#attempt((db) => db.query<Row, Values>(sql).all(values));
  }

  /** Replaces an unreadable file by an empty one. */
  #attempt<T>(work: (db: Database) => T): T {
    try {
      return work(this.#db);
    } catch (error) {
      if (!isUnreadable(error)) throw error;
      this.#db.close();
      this.#db = this.#replace(describeFailure(error));
      return work(this.#db);
    }
  }

  #open(): Database {
    try {
      return openFile(this.#path);
    } catch (error) {
      if (error instanceof OtherVersion || isUnreadable(error)) {
        return this.#replace(describeFailure(error));
      }
      return this.#openInMemory(error);
    }
  }

  #replace(reason: string): Database {
    this.#onLost(
      `${this.#path} was replaced by an empty file (${reason}): it held the activity of the desks`,
    );
    try {
      for (const end of ["", "-wal", "-shm"]) rmSync(this.#path + end, { force: true });
      return openFile(this.#path);
    } catch (error) {
      return this.#openInMemory(error);
    }
  }

  #openInMemory(error: unknown): Database {
    this.#onLost(
      `${this.#path} cannot be used (${describeFailure(error)}): the activity of the desks is kept in memory only, until the next start`,
    );
    return prepare(new Database(":memory:", { strict: true }));
  }
}

/** The buckets of a width that begin with the one that contains `from`. */
function since(from: number, width: ActivityWidth): { width: number; from: number } {
  const { ms } = activityWidths[width];
  return { width: ms, from: startOfBucket(from, ms) };
}

class OtherVersion extends Error {}

function openFile(path: string): Database {
  closeSync(openSync(path, "a", 0o600));
  return prepare(new Database(path, { create: false, readwrite: true, strict: true }));
}

function prepare(db: Database): Database {
  try {
    db.run(`PRAGMA busy_timeout = ${BUSY_TIMEOUT_MS}`);
    db.run("PRAGMA trusted_schema = OFF");
    db.run("PRAGMA journal_mode = WAL");
    // Commits do not wait for the disk; a power loss may lose the newest.
    db.run("PRAGMA synchronous = NORMAL");
    const version = readVersion(db);
    if (version === 0) {
      inTransaction(db, () => db.run(`${activitySql}; PRAGMA user_version = ${VERSION}`));
    } else if (version !== VERSION) {
      throw new OtherVersion(`it has version ${version}`);
    }
    return db;
  } catch (error) {
    db.close();
    throw error;
  }
}

/** `keys`: the ids of all keys with their desks', as JSON. */
function dropUnknownKeys(db: Database, keys: string): void {
  for (const table of ["buckets", "rejects"]) {
    db.query(
      `DELETE FROM ${table} WHERE (key_id, desk_id) NOT IN
         (SELECT value ->> 0, value ->> 1 FROM json_each(?))`,
    ).run(keys);
  }
}

function writeBatch(db: Database, { minutes, rejects, repeats }: ActivityBatch): void {
  for (const minute of minutes) addToBuckets(db, minute);
  for (const reject of rejects) addReject(db, reject);
  for (const repeated of repeats) addRepeats(db, repeated);
  const newest = minutes.reduce((at, { start }) => Math.max(at, start), 0);
  for (const deskId of desksOf(minutes)) dropOldBuckets(db, deskId, newest);
  for (const deskId of desksOf(rejects)) {
    keepNewest(db, { table: "rejects", order: "request_id", deskId, kept: REJECTS_KEPT });
  }
  for (const deskId of desksOf(repeats)) {
    keepNewest(db, { table: "repeats", order: "signal_id", deskId, kept: REPEATED_SIGNALS_KEPT });
  }
}

function addToBuckets(db: Database, minute: ActivityBatch["minutes"][number]): void {
  const add = db.query(
    `INSERT INTO buckets (desk_id, width_ms, start, key_id, stored, duplicate, rejected, unauthorized, last_at)
     VALUES ($deskId, $width, $from, $keyId, $stored, $duplicate, $rejected, $unauthorized, $lastAt)
     ON CONFLICT DO UPDATE SET stored = stored + excluded.stored,
       duplicate = duplicate + excluded.duplicate, rejected = rejected + excluded.rejected,
       unauthorized = unauthorized + excluded.unauthorized, last_at = max(last_at, excluded.last_at)`,
  );
  const { start, ...counts } = minute;
  for (const width of WIDTHS) add.run({ ...counts, ...since(start, width) });
}

function addReject(db: Database, { deskId, ...reject }: ActivityBatch["rejects"][number]): void {
  db.query(
    "INSERT INTO rejects (desk_id, request_id, key_id, reject) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING",
  ).run(deskId, reject.request_id, reject.key_id, JSON.stringify(reject));
}

function addRepeats(db: Database, repeated: ActivityBatch["repeats"][number]): void {
  const { deskId, signalId, duplicates, differing, differs, lastAt } = repeated;
  db.query(
    `INSERT INTO repeats (desk_id, signal_id, duplicates, differing, differs, last_at)
     VALUES (?, ?, ?, ?, ?, ?)
     ON CONFLICT DO UPDATE SET duplicates = duplicates + excluded.duplicates,
       differing = differing + excluded.differing, last_at = max(last_at, excluded.last_at),
       differs = (SELECT json_group_array(DISTINCT value)
         FROM (SELECT value FROM json_each(differs) UNION ALL SELECT value FROM json_each(excluded.differs)))`,
  ).run(deskId, signalId, duplicates, differing, JSON.stringify(differs), lastAt);
}

function dropOldBuckets(db: Database, deskId: number, now: number): void {
  const drop = db.query("DELETE FROM buckets WHERE desk_id = ? AND width_ms = ? AND start <= ?");
  for (const { ms, kept } of Object.values(activityWidths)) drop.run(deskId, ms, now - ms * kept);
}

function keepNewest(
  db: Database,
  { table, order, deskId, kept }: { table: string; order: string; deskId: number; kept: number },
): void {
  db.query(
    `DELETE FROM ${table} WHERE desk_id = $desk AND ${order} <=
       (SELECT ${order} FROM ${table} WHERE desk_id = $desk ORDER BY ${order} DESC LIMIT 1 OFFSET $kept)`,
  ).run({ desk: deskId, kept });
}

function desksOf(items: readonly { readonly deskId: number }[]): ReadonlySet<number> {
  return new Set(items.map(({ deskId }) => deskId));
}

/** What was done with a desk's keys: see `domain/activity.ts`. */
import { Database } from "bun:sqlite";
import { join } from "node:path";
import {
  type ActivityBatch,
  type ActivityOwner,
  type ActivityWidth,
  activityWidths,
  type Bucket,
  type KeyActivity,
  type RejectQuery,
  type Rejects,
  REPEATED_SIGNALS_KEPT,
  type Repeats,
  startOfBucket,
} from "../../domain/activity.ts";
import type { Activity } from "../../domain/storage.ts";
import { readRejects, writeRejects } from "./activity-rejects.ts";
import activitySql from "./activity.sql" with { type: "text" };
import { describeFailure } from "./failures.ts";
import { BUSY_TIMEOUT_MS, SideFile } from "./side-file.ts";
import { inTransaction } from "./transaction.ts";

export const ACTIVITY_NAME = "signalbox-activity.db";

/** Raise it with each change of `activity.sql`. */
const VERSION = 3;
const WIDTHS = Object.keys(activityWidths) as ActivityWidth[];

type Values = Record<string, string | number | null>;

export class SqliteActivity implements Activity {
  readonly #path: string;
  readonly #onWarning: (sentence: string) => void;
  readonly #file: SideFile;

  /**
   * Never throws: a server starts without it. `onWarning` gets a sentence about what cannot be read or
   * kept. The folder must exist.
   */
  constructor(dataDir: string, onWarning: (sentence: string) => void) {
    this.#path = join(dataDir, ACTIVITY_NAME);
    this.#onWarning = onWarning;
    this.#file = new SideFile({
      path: this.#path,
      content: "the activity of the desks",
      sql: activitySql,
      version: VERSION,
      onWarning,
    });
  }

  close(): void {
    this.#file.close();
  }

  /**
   * Drops the activity of keys that this database does not have: after a restore, other desks may have the
   * same numbers. Call it first. If that is impossible now, warns instead.
   */
  keepKeysOf(database: Database): void {
    try {
      const keys = JSON.stringify(database.query("SELECT id, desk_id FROM api_keys").values());
      this.#file.use((db) => inTransaction(db, () => dropUnknownKeys(db, keys)));
    } catch (error) {
      this.#onWarning(
        `the activity of unknown keys was not dropped from ${this.#path} (${describeFailure(error)}): it will be retried at the next start`,
      );
    }
  }

  write(batch: ActivityBatch): void {
    this.#file.use((db) => inTransaction(db, () => writeBatch(db, batch)));
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

  bucketsOfKeys(
    deskId: number,
    keyIds: readonly string[],
    width: ActivityWidth,
    from: number,
  ): ReadonlyMap<string, readonly Bucket[]> {
    const rows = this.#rows<Bucket & { keyId: string }>(
      `SELECT key_id AS keyId, start, stored, duplicate, rejected
       FROM buckets WHERE desk_id = $desk AND width_ms = $width AND start >= $from
         AND key_id IN (SELECT value FROM json_each($keys)) ORDER BY start`,
      { desk: deskId, keys: JSON.stringify(keyIds), ...since(from, width) },
    );
    const found = new Map<string, Bucket[]>();
    for (const { keyId, ...bucket } of rows) {
      const ofKey = found.get(keyId) ?? [];
      ofKey.push(bucket);
      found.set(keyId, ofKey);
    }
    return found;
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
    return this.#file.use((db) => selectStillInUse(db, deskId, from, limit));
  }

  rejects(query: RejectQuery): Rejects[] {
    return this.#file.use((db) => readRejects(db, query));
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
    return this.#file.use((db) => db.query<Row, Values>(sql).all(values));
  }
}

/** For a command, which must not replace the file of a server. Never throws. */
export function readStillInUse(dataDir: string): Pick<Activity, "keysStillInUse"> {
  return {
    keysStillInUse(deskId, from, limit) {
      try {
        using db = new Database(join(dataDir, ACTIVITY_NAME), {
          create: false,
          readwrite: true,
          strict: true,
        });
        db.run(`PRAGMA busy_timeout = ${BUSY_TIMEOUT_MS}`);
        db.run("PRAGMA trusted_schema = OFF");
        return selectStillInUse(db, deskId, from, limit);
      } catch {
        return [];
      }
    },
  };
}

function selectStillInUse(db: Database, deskId: number, from: number, limit: number): string[] {
  return db
    .query<{ key_id: string }, Values>(
      `SELECT key_id FROM buckets
       WHERE desk_id = $desk AND width_ms = $width AND start >= $from AND unauthorized > 0
       GROUP BY key_id ORDER BY max(last_at) DESC LIMIT $limit`,
    )
    .all({ desk: deskId, limit, ...since(from, "hour") })
    .map(({ key_id }) => key_id);
}

/** The buckets of a width that begin with the one that contains `from`. */
function since(from: number, width: ActivityWidth): { width: number; from: number } {
  const { ms } = activityWidths[width];
  return { width: ms, from: startOfBucket(from, ms) };
}

/** `keys`: the ids of all keys with their desks', as JSON. */
function dropUnknownKeys(db: Database, keys: string): void {
  for (const table of ["buckets", "reject_reasons"]) {
    db.query(
      `DELETE FROM ${table} WHERE (key_id, desk_id) NOT IN
         (SELECT value ->> 0, value ->> 1 FROM json_each(?))`,
    ).run(keys);
  }
}

function writeBatch(db: Database, { minutes, rejects, repeats }: ActivityBatch): void {
  for (const minute of minutes) addToBuckets(db, minute);
  for (const repeated of repeats) addRepeats(db, repeated);
  const newest = minutes.reduce((at, { start }) => Math.max(at, start), 0);
  for (const deskId of desksOf(minutes)) dropOldBuckets(db, deskId, newest);
  for (const deskId of desksOf(repeats)) dropOldRepeats(db, deskId);
  writeRejects(db, rejects);
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

function dropOldRepeats(db: Database, deskId: number): void {
  db.query(
    `DELETE FROM repeats WHERE desk_id = $deskId AND signal_id <=
       (SELECT signal_id FROM repeats WHERE desk_id = $deskId
        ORDER BY signal_id DESC LIMIT 1 OFFSET $kept)`,
  ).run({ deskId, kept: REPEATED_SIGNALS_KEPT });
}

function desksOf(items: readonly { readonly deskId: number }[]): ReadonlySet<number> {
  return new Set(items.map(({ deskId }) => deskId));
}

/** What was done with a desk's keys: see `domain/activity/activity.ts`. */
import { Database } from "bun:sqlite";
import { join } from "node:path";
import {
  type ActivityBatch,
  type ActivityOwner,
  type ActivityWidth,
  activityWidths,
  type Bucket,
  type Differing,
  type DifferingQuery,
  type DifferingTotal,
  type KeyActivity,
  type RejectQuery,
  type Rejects,
  type Repeats,
  startOfBucket,
} from "../../../domain/activity/activity.ts";
import type { Activity } from "../../../domain/storage/activity.ts";
import { addDiffering, dropOldDiffering, readDiffering, sumDiffering } from "./differing.ts";
import { addRejects, dropOldRejects, readRejects, touchedRejects } from "./rejects.ts";
import { addRepeats, dropOldRepeats, readRepeats } from "./repeats.ts";
import {
  type ActivitySchema,
  attachUnwritten,
  hasUnwritten,
  merging,
  moveUnwritten,
} from "./unwritten.ts";
import activitySql from "./activity.sql" with { type: "text" };
import { describeFailure, explainTransient, isTransient, isUnreadable } from "../files/failures.ts";
import { BUSY_TIMEOUT_MS, SideFile } from "../files/side-file.ts";
import { inTransaction } from "../files/transaction.ts";

export const ACTIVITY_NAME = "signalbox-activity.db";

/** Raise it with each change of `activity.sql`. */
const VERSION = 5;
const WIDTHS = Object.keys(activityWidths) as ActivityWidth[];
/** Between two attempts to write what the disk refused: a lock is waited for. */
const RETRY_MS = 2_000;

type Values = Record<string, string | number | null>;

export class SqliteActivity implements Activity {
  readonly #path: string;
  readonly #onWarning: (sentence: string) => void;
  readonly #file: SideFile;
  #problem: string | null = null;
  #retryAt = 0;

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
      onOpened: attachUnwritten,
      onWarning,
    });
  }

  close(): void {
    this.#retryAt = 0;
    if (this.#problem !== null) this.#file.use((db) => this.#move(db));
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

  write(batch: ActivityBatch): string | null {
    return this.#file.use((db) => {
      db.transaction(() => addBatch(db, batch))();
      return this.#move(db);
    });
  }

  /** Returns why the disk refuses it, or null. */
  #move(db: Database): string | null {
    if (performance.now() < this.#retryAt || !hasUnwritten(db)) return this.#problem;
    try {
      inTransaction(db, () => {
        const touched = touchedIn(db);
        moveUnwritten(db);
        dropOld(db, "main", touched);
      });
      this.#problem = null;
    } catch (error) {
      if (isUnreadable(error)) throw error;
      this.#problem = isTransient(error) ? explainTransient(error) : describeFailure(error);
      this.#retryAt = performance.now() + RETRY_MS;
    }
    return this.#problem;
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
      `SELECT key_id AS keyId, start, sum(stored) AS stored, sum(duplicate) AS duplicate,
         sum(rejected) AS rejected
       FROM buckets WHERE desk_id = $desk AND width_ms = $width AND start >= $from
         AND key_id IN (SELECT value FROM json_each($keys)) GROUP BY start, key_id ORDER BY start`,
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
    return this.#file.use((db) => readRepeats(db, deskId, signalId));
  }

  differing(query: DifferingQuery): Differing[] {
    return this.#file.use((db) => readDiffering(db, query));
  }

  differingTotal(deskId: number, from: number): DifferingTotal | null {
    return this.#file.use((db) => sumDiffering(db, deskId, from));
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
  for (const table of ["buckets", "reject_reasons", "differing"]) {
    db.query(
      `DELETE FROM main.${table} WHERE (key_id, desk_id) NOT IN
         (SELECT value ->> 0, value ->> 1 FROM json_each(?))`,
    ).run(keys);
  }
}

function addBatch(db: Database, { minutes, rejects, repeats, differing }: ActivityBatch): void {
  for (const minute of minutes) addToBuckets(db, minute);
  addRepeats(db, repeats);
  addRejects(db, rejects);
  addDiffering(db, differing);
  dropOld(db, "unwritten", touchedIn(db));
}

function addToBuckets(db: Database, minute: ActivityBatch["minutes"][number]): void {
  const add = db.query(
    `INSERT INTO unwritten.buckets (desk_id, width_ms, start, key_id, stored, duplicate, rejected, unauthorized, last_at)
     VALUES ($deskId, $width, $from, $keyId, $stored, $duplicate, $rejected, $unauthorized, $lastAt)
     ON CONFLICT DO UPDATE SET ${merging.buckets}`,
  );
  const { start, ...counts } = minute;
  for (const width of WIDTHS) add.run({ ...counts, ...since(start, width) });
}

/** What was added since it was last moved to the file. */
interface Touched {
  /** Desks, and the newest minute of each. */
  readonly minutes: readonly { readonly deskId: number; readonly newest: number }[];
  readonly repeats: readonly Desk[];
  readonly differing: readonly Desk[];
  readonly rejects: ReturnType<typeof touchedRejects>;
}

type Desk = { readonly deskId: number };

function touchedIn(db: Database): Touched {
  const desksIn = (table: "repeats" | "differing") =>
    db.query<Desk, []>(`SELECT DISTINCT desk_id AS deskId FROM unwritten.${table}`).all();
  const minutes = db.query<Touched["minutes"][number], [number]>(
    `SELECT desk_id AS deskId, max(start) AS newest FROM unwritten.buckets
     WHERE width_ms = ? GROUP BY desk_id`,
  );
  return {
    minutes: minutes.all(activityWidths.minute.ms),
    repeats: desksIn("repeats"),
    differing: desksIn("differing"),
    rejects: touchedRejects(db),
  };
}

function dropOld(db: Database, schema: ActivitySchema, touched: Touched): void {
  for (const { deskId, newest } of touched.minutes) dropOldBuckets(db, schema, deskId, newest);
  for (const { deskId } of touched.repeats) dropOldRepeats(db, schema, deskId);
  for (const { deskId } of touched.differing) dropOldDiffering(db, schema, deskId);
  dropOldRejects(db, schema, touched.rejects);
}

function dropOldBuckets(
  db: Database,
  schema: ActivitySchema,
  deskId: number,
  newest: number,
): void {
  const drop = db.query(
    `DELETE FROM ${schema}.buckets WHERE desk_id = ? AND width_ms = ? AND start <= ?`,
  );
  for (const { ms, kept } of Object.values(activityWidths))
    drop.run(deskId, ms, newest - ms * kept);
}

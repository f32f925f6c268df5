/** Activity has a database file of its own, which may be lost: a full or slow disk delays no request. */
import { Database } from "bun:sqlite";
import { join } from "node:path";
import type { ActivityBatch } from "../../../domain/activity/activity.ts";
import type { Activity } from "../../../domain/storage/activity.ts";
import { addBatch, dropOld, readActivity, touchedIn } from "../../records/activity/activity.ts";
import { readStillInUse } from "../../records/activity/buckets.ts";
import activitySql from "./activity.sql" with { type: "text" };
import { describeFailure, explainTransient, isTransient, isUnreadable } from "../files/failures.ts";
import { BUSY_TIMEOUT_MS, SideFile } from "../files/side-file.ts";
import { inTransaction } from "../files/transaction.ts";
import { change, reading } from "../sql.ts";
import { attachUnwritten, hasUnwritten, moveUnwritten } from "./unwritten.ts";

export const ACTIVITY_NAME = "signalbox-activity.db";

/** Raise it with each change of `activity.sql`. */
const VERSION = 6;
/** Between two attempts to write what the disk refused: a lock is waited for. */
const RETRY_MS = 2_000;

export interface ActivityFile extends Activity {
  /**
   * Drops the activity of keys that this database does not have: after a restore, other desks may have the
   * same numbers. Call it first. If that is impossible now, warns instead.
   */
  keepKeysOf(database: Database): Promise<void>;
  /** Tries once more to write what the disk refused. */
  close(): Promise<void>;
}

/**
 * Never throws: a server starts without it. `onWarning` gets a sentence about what cannot be read or
 * kept. The folder must exist.
 */
export function openActivity(dataDir: string, onWarning: (sentence: string) => void): ActivityFile {
  const path = join(dataDir, ACTIVITY_NAME);
  const file = new SideFile({
    path,
    content: "the activity of the desks",
    sql: activitySql,
    version: VERSION,
    onOpened: attachUnwritten,
    onWarning,
  });
  let problem: string | null = null;
  let retryAt = 0;

  /** Returns why the disk refuses it, or null. */
  async function move(db: Database): Promise<string | null> {
    if (performance.now() < retryAt || !hasUnwritten(db)) return problem;
    try {
      await change(db, Date.now, async (tx) => {
        const touched = await touchedIn(tx, "unwritten.");
        await moveUnwritten(tx);
        await dropOld(tx, "main.", touched);
      });
      problem = null;
    } catch (error) {
      if (isUnreadable(error)) throw error;
      problem = isTransient(error) ? explainTransient(error) : describeFailure(error);
      retryAt = performance.now() + RETRY_MS;
    }
    return problem;
  }

  return {
    ...readActivity(file.port()),

    write: (batch) =>
      file.use(async (db) => {
        await add(db, batch);
        return move(db);
      }),

    async keepKeysOf(database) {
      try {
        const keys = JSON.stringify(database.query("SELECT id, desk_id FROM api_keys").values());
        await file.use(async (db) => inTransaction(db, () => dropUnknownKeys(db, keys)));
      } catch (error) {
        onWarning(
          `the activity of unknown keys was not dropped from ${path} (${describeFailure(error)}): it will be retried at the next start`,
        );
      }
    },

    async close() {
      retryAt = 0;
      if (problem !== null) await file.use((db) => move(db));
      file.close();
    },
  };
}

/** Into memory. It takes no lock of the file. */
async function add(db: Database, batch: ActivityBatch): Promise<void> {
  await change(
    db,
    Date.now,
    async (tx) => {
      await addBatch(tx, "unwritten.", batch);
      await dropOld(tx, "unwritten.", await touchedIn(tx, "unwritten."));
    },
    { begin: "BEGIN" },
  );
}

/** For a command, which must not replace the file of a server. Never throws. */
export function stillInUseIn(dataDir: string): Pick<Activity, "keysStillInUse"> {
  return {
    async keysStillInUse(deskId, from, limit) {
      try {
        using db = new Database(join(dataDir, ACTIVITY_NAME), {
          create: false,
          readwrite: true,
          strict: true,
        });
        db.run(`PRAGMA busy_timeout = ${BUSY_TIMEOUT_MS}`);
        db.run("PRAGMA trusted_schema = OFF");
        return await readStillInUse({ ...reading(db), now: Date.now() }, deskId, from, limit);
      } catch {
        return [];
      }
    },
  };
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

/**
 * Activity has a database file of its own, which may be lost: a full or slow disk delays no request. It goes into
 * tables in memory first, and from there into the file: what a full disk refuses stays in memory, and is read like
 * the rest. Both have the tables of `activity.sql`: the schemas `unwritten` and `main`.
 */
import { Database } from "bun:sqlite";
import { existsSync } from "node:fs";
import { join } from "node:path";
import type { ActivityBatch } from "../../../domain/activity/activity.ts";
import type { Activity } from "../../../domain/storage/activity.ts";
import type { Storage } from "../../../domain/storage/storage.ts";
import { readActivity, readSentRejects, readStillInUse } from "../../records/activity/reading.ts";
import { addBatch, addRows, dropOld, forgetSent, tables } from "../../records/activity/writing.ts";
import type { Reader } from "../../records/sql.ts";
import activitySql from "./activity.sql" with { type: "text" };
import { describeFailure, explainTransient, isTransient, isUnreadable } from "../files/failures.ts";
import { BUSY_TIMEOUT_MS, SideFile } from "../files/side-file.ts";
import { guard, inTransaction } from "../files/transaction.ts";
import { change, reading } from "../sql.ts";

export const ACTIVITY_NAME = "signalbox-activity.db";

/** Raise it with each change of `activity.sql`. */
const VERSION = 8;
/** The file's lock is tried again with each batch: the thread has other things to do. */
const LOCK_WAIT_MS = 100;

/** Not only marked as free: it may be what a desk no longer keeps. */
const OVERWRITE_DELETED = "PRAGMA secure_delete = ON";

export interface ActivityFile extends Activity {
  /**
   * Drops the activity of keys that this database does not have: after a restore, other desks may have the
   * same numbers. Call it first. If that is impossible now, warns instead.
   */
  keepKeysOf(database: Database): Promise<void>;
  /** Tries once more to write what the disk refused. */
  close(): Promise<void>;
}

/** Reads which desks keep nothing of what requests sent. */
type SilentDesks = () => Promise<ReadonlySet<number>>;

/**
 * Never throws: a server starts without it. `onWarning` gets a sentence about what cannot be read or
 * kept. The folder must exist.
 */
export function openActivity(
  dataDir: string,
  onWarning: (sentence: string) => void,
  silentDesks: SilentDesks = () => Promise.resolve(new Set()),
): ActivityFile {
  const path = join(dataDir, ACTIVITY_NAME);
  const file = new SideFile({
    path,
    content: "the activity of the desks",
    sql: activitySql,
    version: VERSION,
    onOpened: attachUnwritten,
    onWarning,
  });
  return {
    ...readActivity(file.port()),

    write: (batch) =>
      file.use(async (db) => {
        await add(db, batch, await silentDesks());
        return moveUnwritten(db, silentDesks);
      }),

    forgetSent: (deskId) =>
      file.use((db) =>
        change(db, Date.now, async (tx) => {
          for (const schema of ["unwritten.", "main."]) await forgetSent(tx, schema, [deskId]);
        }),
      ),

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
      await file.use((db) => moveUnwritten(db, silentDesks));
      file.close();
    },
  };
}

/** Takes no lock of the file. */
function add(db: Database, batch: ActivityBatch, silent: ReadonlySet<number>): Promise<void> {
  return change(
    db,
    Date.now,
    async (tx) => {
      await addBatch(tx, "unwritten.", batch, silent);
      await dropOld(tx, "unwritten.", "unwritten.");
    },
    { begin: "BEGIN" },
  );
}

/** Queries that name no schema read both: a temporary view hides a table of the same name. */
function attachUnwritten(db: Database): void {
  db.run(`PRAGMA busy_timeout = ${LOCK_WAIT_MS}`);
  db.run("PRAGMA temp_store = MEMORY");
  db.run(OVERWRITE_DELETED);
  db.run("ATTACH ':memory:' AS unwritten");
  db.run(activitySql.replaceAll(/CREATE (?:TABLE|INDEX) /g, "$&unwritten."));
  for (const table of tables) {
    db.run(`CREATE TEMP VIEW ${table} AS
      SELECT * FROM main.${table} UNION ALL SELECT * FROM unwritten.${table}`);
  }
}

/** Returns why the disk refuses it, or null. */
async function moveUnwritten(db: Database, silentDesks: SilentDesks): Promise<string | null> {
  try {
    await change(db, Date.now, async (tx) => {
      // With the file's lock: a desk that keeps nothing since then waits with what it deletes.
      const silent = await silentDesks();
      for (const schema of ["unwritten.", "main."]) await forgetSent(tx, schema, silent);
      await addRows(tx, "main.", "unwritten.");
      for (const table of tables) await tx.run(`DELETE FROM unwritten.${table}`);
    });
    return null;
  } catch (error) {
    if (isUnreadable(error)) throw error;
    return isTransient(error) ? explainTransient(error) : describeFailure(error);
  }
}

/** For a command, which must not replace the file of a server. */
export function activityForCommand(dataDir: string): Storage["activity"] {
  const path = join(dataDir, ACTIVITY_NAME);
  const open = (): Database => {
    const db = new Database(path, { create: false, readwrite: true, strict: true });
    guard(db, BUSY_TIMEOUT_MS);
    return db;
  };
  const read = async <Row>(work: (sql: Reader) => Promise<Row[]>): Promise<Row[]> => {
    try {
      using db = open();
      return await work({ ...reading(db), now: Date.now() });
    } catch {
      return [];
    }
  };
  return {
    keysStillInUse: (...query) => read((sql) => readStillInUse(sql, ...query)),
    sentRejects: (...query) => read((sql) => readSentRejects(sql, ...query)),
    async forgetSent(deskId) {
      if (!existsSync(path)) return;
      using db = open();
      db.run(OVERWRITE_DELETED);
      await change(db, Date.now, (tx) => forgetSent(tx, "main.", [deskId]));
    },
  };
}

/** `keys`: the ids of all keys with their desks', as JSON. */
function dropUnknownKeys(db: Database, keys: string): void {
  for (const table of tables) {
    db.query(
      `DELETE FROM main.${table} WHERE (key_id, desk_id) NOT IN
         (SELECT value ->> 0, value ->> 1 FROM json_each(?))`,
    ).run(keys);
  }
}

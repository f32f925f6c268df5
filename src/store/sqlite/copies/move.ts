/** The ends of a copy that are in a data folder. */
import { Database } from "bun:sqlite";
import { closeSync, existsSync, openSync, renameSync } from "node:fs";
import { join } from "node:path";
import { UserError } from "../../../lib/errors.ts";
import { syncPath } from "../../../lib/files.ts";
import { insertOf, type Source, type Target } from "../../records/copy/ends.ts";
import { BlockWriter } from "../append/blocks.ts";
import { explainCommandFailure } from "../files/failures.ts";
import { copyingPath, DATABASE_NAME, requireDatabase, restoringPath } from "../files/folder.ts";
import { lockFolder } from "../files/lock.ts";
import { APPLICATION_ID, migrate } from "../files/migrate.ts";
import { openDatabase } from "../files/open.ts";
import { inTransaction } from "../files/transaction.ts";
import { removeSessions } from "../side/sessions.ts";
import { reading, sqliteSql } from "../sql.ts";
import { verifyDatabase } from "./verify.ts";

/** Commands wait, and are refused, until `work` is done; a server cannot have the folder. */
export async function fromSqlite<T>(
  dataDir: string,
  work: (source: Source) => Promise<T>,
): Promise<T> {
  requireDatabase(dataDir);
  using _lock = lockFolder(dataDir);
  using db = openDatabase(dataDir, "command");
  try {
    db.run("BEGIN IMMEDIATE");
    return await work({
      name: dataDir,
      sql: { ...reading(db), now: Date.now() },
      // The folder's lock has refused them.
      refuseWaiting: () => Promise.resolve(),
    });
  } catch (error) {
    throw explainCommandFailure(error, db.filename);
  } finally {
    if (db.inTransaction) db.run("ROLLBACK");
  }
}

/** Until it is complete, the database has another name, which servers and commands refuse. */
export async function toSqlite<T>(
  dataDir: string,
  work: (target: Target) => Promise<T>,
): Promise<T> {
  using _lock = lockFolder(dataDir);
  const path = join(dataDir, DATABASE_NAME);
  if ([path, `${path}-wal`, restoringPath(path)].some((file) => existsSync(file))) {
    throw new UserError(`${dataDir} has a database already: name an empty or new folder.`);
  }
  const copying = copyingPath(path);
  try {
    using db = open(copying);
    return await work(targetOf(db, dataDir, path));
  } catch (error) {
    throw explainCommandFailure(error, copying);
  }
}

function open(path: string): Database {
  closeSync(openSync(path, "a", 0o600));
  const db = new Database(path, { create: false, readwrite: true, strict: true });
  db.run(`PRAGMA application_id = ${APPLICATION_ID}`);
  db.run("PRAGMA trusted_schema = OFF");
  db.run("PRAGMA foreign_keys = ON");
  db.run("PRAGMA cache_size = -65536");
  // What a power cut takes is copied again.
  db.run("PRAGMA journal_mode = WAL");
  db.run("PRAGMA synchronous = NORMAL");
  migrate(db);
  return db;
}

function targetOf(db: Database, dataDir: string, path: string): Target {
  return {
    name: dataDir,
    sql: sqliteSql({ reader: db }),
    numbersSignals: true,

    async write(tx, table, rows, key) {
      const columns = Object.keys(rows[0] ?? {}).filter(
        (column) => table !== "signals" || column !== "seq",
      );
      const values = `VALUES (${columns.map((_, index) => `$${index + 1}`).join(", ")})`;
      const insert = insertOf(table, columns, values, key);
      for (const row of rows) await tx.run(insert, ...columns.map((column) => row[column] ?? null));
    },

    async complete() {
      const { last } = db.query("SELECT ifnull(max(seq), 0) AS last FROM signals").get() as {
        last: number;
      };
      inTransaction(db, () => new BlockWriter(db).add([], last));
    },

    async finish() {
      // Closes the log, too. SQLite would wait for readers, of which there are none.
      db.run("PRAGMA journal_mode = DELETE");
      db.close();
      const verification = verifyDatabase(copyingPath(path));
      if (!verification.ok) return verification;
      syncPath(copyingPath(path));
      removeSessions(dataDir);
      renameSync(copyingPath(path), path);
      syncPath(dataDir);
      return verification;
    },
  };
}

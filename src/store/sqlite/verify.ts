/** Looks at everything in a database file, and says what does not hold. Changes nothing. */
import { Database } from "bun:sqlite";
import { UserError } from "../../domain/errors.ts";
import { explainFailure, describeFailure } from "./failures.ts";
import { currentSchema, readVersion, schemaVersion } from "./migrate.ts";
import { openForReading } from "./read.ts";

export interface Check {
  readonly ok: boolean;
  readonly detail: string;
}

export interface Verification {
  readonly ok: boolean;
  readonly file: string;
  /** Of the database; see `migrate.ts`. */
  readonly version: number;
  readonly signals: number;
  /** Of the newest signal, or null without one. */
  readonly newest_id: string | null;
  readonly checks: Readonly<Record<CheckName, Check>>;
}

export type CheckName = keyof typeof checks;

const PROBLEMS_TOLD_MAX = 5;

/** Each returns its first problems, none where all is well. */
const checks = {
  /** Pages, indexes against their tables, types, constraints: all that SQLite knows to look for. */
  integrity: (db: Database) =>
    (db.query(`PRAGMA integrity_check(${PROBLEMS_TOLD_MAX})`).values() as string[][])
      .flat()
      .filter((row) => row !== "ok"),

  foreign_keys: (db: Database) =>
    (
      db.query(`SELECT * FROM pragma_foreign_key_check LIMIT ${PROBLEMS_TOLD_MAX}`).all() as {
        table: string;
        rowid: number;
        parent: string;
      }[]
    ).map(({ table, rowid, parent }) => `row ${rowid} of ${table} has no row in ${parent}`),

  /** The arbiter of deduplication has one entry for each signal that has an id, and the definition of `schema.sql`. */
  deduplication: (db: Database) => {
    const { rows, entries } = db
      .query(
        `SELECT
           (SELECT count(*) FROM signals NOT INDEXED WHERE client_signal_id IS NOT NULL) AS rows,
           (SELECT count(*) FROM signals INDEXED BY signals_client_signal_id WHERE client_signal_id IS NOT NULL) AS entries`,
      )
      .get() as { rows: number; entries: number };
    return rows === entries ? [] : [`${rows} signals with an id, ${entries} entries in the index`];
  },

  /** In the order of storage, each id is greater than the one before. (A window function needs a file to put the rows in.) */
  ids_rising: (db: Database) =>
    (
      db
        .query(
          `SELECT seq FROM signals AS s NOT INDEXED
           WHERE length(id) <> 26
             OR id <= (SELECT id FROM signals WHERE seq < s.seq ORDER BY seq DESC LIMIT 1)
           LIMIT ${PROBLEMS_TOLD_MAX}`,
        )
        .all() as { seq: number }[]
    ).map(({ seq }) => `the id of seq ${seq} is not greater than the one before`),

  version: (db: Database) => {
    const version = readVersion(db);
    if (version === 0) return ["it has none"];
    return version === schemaVersion(currentSchema) ? differences(db) : [];
  },
} as const satisfies Record<string, (db: Database) => string[]>;

/**
 * Throws `UserError` for a file that cannot be looked at at all: missing, foreign, of a newer version, or
 * so damaged that it does not open. Takes as long as reading the file several times. While it runs, a
 * server's log cannot be begun anew, and grows.
 */
export function verifyDatabase(path: string): Verification {
  const db = open(path);
  try {
    const results = Object.entries(checks).map(([name, check]) => [name, run(db, check)] as const);
    const { signals, newest_id } = count(db);
    return {
      ok: results.every(([, { ok }]) => ok),
      file: path,
      version: readVersion(db),
      signals,
      newest_id,
      checks: Object.fromEntries(results) as Record<CheckName, Check>,
    };
  } finally {
    db.close();
  }
}

function open(path: string): Database {
  try {
    return openForReading(path);
  } catch (error) {
    throw error instanceof UserError ? error : explainFailure(error, path);
  }
}

/** Each in a transaction of its own: of one state of the database, and no longer than it must. */
function run(db: Database, check: (db: Database) => string[]): Check {
  db.run("BEGIN");
  try {
    const problems = check(db);
    return { ok: problems.length === 0, detail: problems.join("; ") || "ok" };
  } catch (error) {
    return { ok: false, detail: describeFailure(error) };
  } finally {
    if (db.inTransaction) db.run("ROLLBACK");
  }
}

/** What of `schema.sql` is missing in the database, or is not as it says. */
function differences(db: Database): string[] {
  const wanted = new Database(":memory:");
  try {
    wanted.run(currentSchema.sql);
    const there = new Map(definitions(db));
    return definitions(wanted)
      .filter(([name, sql]) => there.get(name) !== sql)
      .map(([name]) => `${name} is ${there.has(name) ? "not as in schema.sql" : "missing"}`);
  } finally {
    wanted.close();
  }
}

/** A table by its columns, for an upgraded one has another text than a new one; an index by its text. */
function definitions(db: Database): [name: string, definition: string][] {
  return db
    .query(
      `SELECT name, CASE type
         WHEN 'table' THEN (SELECT group_concat(name || ' ' || type || ' ' || "notnull" || ' ' || pk) FROM pragma_table_xinfo(s.name))
         ELSE sql END
       FROM sqlite_schema AS s WHERE sql IS NOT NULL`,
    )
    .values() as [string, string][];
}

function count(db: Database): { signals: number; newest_id: string | null } {
  try {
    return db.query("SELECT count(*) AS signals, max(id) AS newest_id FROM signals").get() as {
      signals: number;
      newest_id: string | null;
    };
  } catch {
    // The checks have said why.
    return { signals: 0, newest_id: null };
  }
}

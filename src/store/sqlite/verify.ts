/** Looks at everything in a database file, and says what does not hold. Changes nothing. */
import { Database } from "bun:sqlite";
import { UserError } from "../../domain/errors.ts";
import { SignalBody, SYMBOL_CHARACTERS_MAX } from "../../domain/signal.ts";
import { dedupeProblems } from "./dedupe/verify.ts";
import { explainFailure, describeFailure } from "./failures.ts";
import { currentSchema, readVersion, schemaVersion } from "./migrate.ts";
import { integrityProblems, openForReading } from "./read.ts";

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
/** The first version that has the index as it is now: an upgrade makes it from nothing but the signals. */
const DEDUPE_VERSION = 4;

/**
 * What `domain/signal.ts` lets in, as far as SQL can say it, and whose it is. The `CHECK`s of `schema.sql`
 * are among it, because SQLite does not even read them in a database that is opened for reading.
 */
const POSSIBLE = [
  oneOf("source"),
  oneOf("type"),
  oneOf("side"),
  `(direction IS NULL OR ${oneOf("direction")})`,
  `length(symbol) BETWEEN 1 AND ${SYMBOL_CHARACTERS_MAX}`,
  "symbol NOT GLOB '*[' || char(1) || '-' || char(31) || char(127) || '-' || char(159) || ']*'",
  "instr(CAST(symbol AS BLOB), x'00') = 0",
  "received_at BETWEEN 0 AND 281474976710655", // what a ULID has room for
  "(signal_time IS NULL OR signal_time BETWEEN 0 AND 9007199254740991)",
  "(price IS NULL OR abs(price) <= 1.7976931348623157e308)",
  "(quantity IS NULL OR abs(quantity) <= 1.7976931348623157e308)",
  "(metadata IS NULL OR CASE json_valid(metadata) WHEN 1 THEN json_type(metadata) = 'object' ELSE 0 END)",
  "desk_id = (SELECT desk_id FROM api_keys WHERE id = key_id)",
].join(" AND ");

function oneOf(column: "source" | "type" | "side" | "direction"): string {
  const values = SignalBody.properties[column]["enum"] as readonly string[];
  return `${column} IN (${values.map((value) => `'${value}'`).join(", ")})`;
}

/** Each returns its first problems, none where all is well. */
const checks = {
  /** Pages, indexes against their tables, types: all that SQLite knows to look for, but for `CHECK` (see `values`). */
  integrity: (db: Database) => integrityProblems(db, PROBLEMS_TOLD_MAX),

  foreign_keys: (db: Database) =>
    (
      db.query(`SELECT * FROM pragma_foreign_key_check LIMIT ${PROBLEMS_TOLD_MAX}`).all() as {
        table: string;
        rowid: number;
        parent: string;
      }[]
    ).map(({ table, rowid, parent }) => `row ${rowid} of ${table} has no row in ${parent}`),

  /** No signal is there twice, and the index that sees to it has an entry for each. (An older version's is made anew by the upgrade.) */
  deduplication: (db: Database) =>
    readVersion(db) < DEDUPE_VERSION ? [] : dedupeProblems(db, PROBLEMS_TOLD_MAX),

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

  /** Signals that were never taken as they are: a damaged value is still a value to SQLite. */
  values: (db: Database) =>
    (
      db
        .query(
          `SELECT seq FROM signals NOT INDEXED WHERE NOT (${POSSIBLE}) LIMIT ${PROBLEMS_TOLD_MAX}`,
        )
        .all() as { seq: number }[]
    ).map(({ seq }) => `seq ${seq} has a value that no signal can have`),

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

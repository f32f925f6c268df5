/** Looks at everything in a database file, and says what does not hold. Changes nothing. */
import { Database } from "bun:sqlite";
import { UserError } from "../../domain/errors.ts";
import type { TSchema } from "@sinclair/typebox";
import { BODY_BYTES_MAX, SignalBody } from "../../domain/signal.ts";
import { explainFailure, describeFailure } from "./failures.ts";
import { readVersion } from "./migrate.ts";
import { integrityProblems, openUnread, refuseDamaged } from "./read.ts";
import { compareSchema, describeDifferences } from "./schema.ts";

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

export type CheckName = "schema" | keyof typeof checks;

const PROBLEMS_TOLD_MAX = 5;

/**
 * What `domain/signal.ts` accepts, as far as SQL can say it, and that a signal's key is its desk's. This
 * includes the `CHECK`s of `schema.sql`: SQLite does not evaluate them in a database opened read-only.
 */
const POSSIBLE = [
  ...Object.entries(SignalBody.properties).map(
    ([column, schema]) => `(${column} IS NULL OR ${accepts(column, schema)})`,
  ),
  "received_at BETWEEN 0 AND 281474976710655", // what a ULID has room for
  "desk_id = (SELECT desk_id FROM api_keys WHERE id = key_id)",
].join(" AND ");

function accepts(column: string, schema: TSchema): string {
  if (Array.isArray(schema["enum"])) {
    return `${column} IN (${schema["enum"].map((value) => `'${value}'`).join(", ")})`;
  }
  switch (schema["type"]) {
    case "string":
      return `length(${column}) BETWEEN ${schema["minLength"]} AND ${schema["maxLength"]} AND ${hasNoControls(column)}`;
    case "number":
      return `abs(${column}) <= ${Number.MAX_VALUE}`;
    case "integer":
      return `${column} BETWEEN ${schema["minimum"]} AND ${schema["maximum"]}`;
    default:
      return `octet_length(${column}) <= ${BODY_BYTES_MAX}
        AND CASE json_valid(${column}) WHEN 1 THEN json_type(${column}) = 'object' ELSE 0 END`;
  }
}

function hasNoControls(column: string): string {
  return `(${column} NOT GLOB '*[' || char(1) || '-' || char(31) || char(127) || '-' || char(159) || ']*'
    AND instr(CAST(${column} AS BLOB), x'00') = 0)`;
}

/** What the command line and the console show of desks, keys and members. */
const SHOWN = [
  ["desks", "name"],
  ["api_keys", "label"],
  ["members", "email"],
] as const;

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

  /** Values that were never taken as they are: a damaged value is still a value to SQLite. */
  values: (db: Database) => [...impossibleSignals(db), ...controlCharacters(db)],
} as const satisfies Record<string, (db: Database) => string[]>;

function impossibleSignals(db: Database): string[] {
  const rows = db
    .query(`SELECT seq FROM signals NOT INDEXED WHERE NOT (${POSSIBLE}) LIMIT ${PROBLEMS_TOLD_MAX}`)
    .all() as { seq: number }[];
  return rows.map(({ seq }) => `seq ${seq} has a value that no signal can have`);
}

function controlCharacters(db: Database): string[] {
  return SHOWN.flatMap(([table, column]) => {
    const rows = db
      .query(
        `SELECT rowid FROM ${table} WHERE NOT ${hasNoControls(column)} LIMIT ${PROBLEMS_TOLD_MAX}`,
      )
      .all() as { rowid: number }[];
    return rows.map(
      ({ rowid }) => `row ${rowid} of ${table} has a control character in its ${column}`,
    );
  });
}

/**
 * Throws `UserError` for a file that cannot be looked at at all: missing, foreign, of a newer version, or
 * so damaged that it does not open. Takes as long as reading the file several times. While it runs, a
 * server's log cannot start again, and grows.
 */
export function verifyDatabase(path: string): Verification {
  const db = explained(path, () => openUnread(path));
  try {
    const schema = explained(path, () => checkSchema(db));
    if (schema.ok) explained(path, () => refuseDamaged(db, path));
    const results = Object.entries(checks).map(
      ([name, check]) => [name, schema.ok ? run(db, check) : NOT_CHECKED] as const,
    );
    const { signals, newest_id } = schema.ok ? count(db) : NOT_COUNTED;
    return {
      ok: schema.ok && results.every(([, { ok }]) => ok),
      file: path,
      version: readVersion(db),
      signals,
      newest_id,
      checks: { schema, ...Object.fromEntries(results) } as Record<CheckName, Check>,
    };
  } finally {
    db.close();
  }
}

const NOT_CHECKED: Check = { ok: false, detail: "not checked, because of the schema" };
const NOT_COUNTED = { signals: 0, newest_id: null };

/** Runs first, and alone if it fails: anybody may have made the file, with anything in its schema. */
function checkSchema(db: Database): Check {
  const problems = describeDifferences(compareSchema(db));
  if (readVersion(db) === 0) problems.unshift("it has no version");
  return { ok: problems.length === 0, detail: problems.join("; ") || "ok" };
}

function explained<T>(path: string, work: () => T): T {
  try {
    return work();
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

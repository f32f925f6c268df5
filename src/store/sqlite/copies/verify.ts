/** Checks everything in a database file, and changes nothing. */
import { Database } from "bun:sqlite";
import type { TSchema } from "@sinclair/typebox";
import { describeDamaged, type HashedSignal, isIntact } from "../../../domain/signal/hash.ts";
import { BODY_BYTES_MAX, SignalBody } from "../../../domain/signal/signal.ts";
import type { Check, Verification } from "../../../domain/storage/files.ts";
import { BLOCK_SIGNALS, type Listed, lists } from "../../records/signals/block-ranges.ts";
import { valuesOf } from "../append/blocks.ts";
import { DamageError, describeFailure, explainFailure } from "../files/failures.ts";
import { readVersion } from "../files/migrate.ts";
import { integrityProblems, openSuspect, refuseDamaged } from "../read/read.ts";
import { compareSchema, describeDifferences } from "../files/schema.ts";

const PROBLEMS_TOLD_MAX = 5;

/**
 * What `domain/signal/signal.ts` accepts, as far as SQL can express it, and that a signal's key is a send key of its desk. This
 * includes the `CHECK`s of `schema.sql`: SQLite does not evaluate them in a database opened read-only.
 */
export const POSSIBLE = [
  ...Object.entries(SignalBody.properties).map(
    ([column, schema]) => `(${column} IS NULL OR ${accepts(column, schema)})`,
  ),
  `octet_length(id) = 26 AND id GLOB '[0-7]${"[0-9A-HJKMNP-TV-Z]".repeat(25)}'`,
  "received_at BETWEEN 0 AND 281474976710655", // what a ULID has room for
  "desk_id = (SELECT iif(scope = 'send', desk_id, 0) FROM api_keys WHERE id = key_id)",
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

/** Columns that the command line and the console show. */
const SHOWN = [
  ["desks", "name"],
  ["api_keys", "label"],
  ["members", "email"],
] as const;

/** Each returns its first problems, none if all is well. */
const checks: Readonly<Record<string, (db: Database) => string[]>> = {
  /** Pages, indexes against their tables, types: everything that SQLite can check, except `CHECK` (see `values`). */
  integrity: (db) => integrityProblems(db, PROBLEMS_TOLD_MAX),

  foreign_keys: (db) =>
    first<{ table: string; rowid: number; parent: string }>(
      db,
      "SELECT * FROM pragma_foreign_key_check",
    ).map(({ table, rowid, parent }) => `row ${rowid} of ${table} has no row in ${parent}`),

  /** In the order of storage, each id is greater than the one before. (A window function would need a file for its rows.) */
  ids_rising: (db) =>
    first<{ seq: number }>(
      db,
      `SELECT seq FROM signals AS s NOT INDEXED
       WHERE length(id) <> 26
         OR id <= (SELECT id FROM signals WHERE seq < s.seq ORDER BY seq DESC LIMIT 1)`,
    ).map(({ seq }) => `the id of seq ${seq} is not greater than the one before`),

  /** Limits of time find no signal in a block that says otherwise, and none before a block that is missing. */
  blocks: (db) => [
    ...first<{ block: number }>(
      db,
      `SELECT block FROM signal_blocks WHERE (received_min, received_max, signals, ${BLOCK_SIGNALS}) IS NOT
         (SELECT min(received_at), max(received_at), count(*), count(*) FROM signals NOT INDEXED
          WHERE seq > block * ${BLOCK_SIGNALS} AND seq <= (block + 1) * ${BLOCK_SIGNALS})`,
    ).map(({ block }) => `block ${block} of signal_blocks does not match its signals`),
    ...incompleteBlocks(db)
      .slice(0, PROBLEMS_TOLD_MAX)
      .map((block) => `block ${block} of signal_blocks lacks values of its signals`),
    ...first<{ block: number }>(
      db,
      "SELECT max(block) AS block FROM signal_blocks HAVING max(block) + 1 <> count(*)",
    ).map(({ block }) => `a block before block ${block} of signal_blocks is missing`),
  ],

  /** A damaged value is still a value to SQLite; this finds those that were never accepted. */
  values: (db) => [
    ...first<{ seq: number }>(
      db,
      `SELECT seq FROM signals NOT INDEXED WHERE NOT (${POSSIBLE})`,
    ).map(({ seq }) => `seq ${seq} has a value that no signal can have`),
    ...first<{ rowid: number }>(
      db,
      "SELECT rowid FROM api_keys WHERE scope NOT IN ('send', 'read') OR (desk_id IS NULL AND scope <> 'read')",
    ).map(({ rowid }) => `row ${rowid} of api_keys has a scope that it cannot have`),
    ...SHOWN.flatMap(([table, column]) =>
      first<{ rowid: number }>(
        db,
        `SELECT rowid FROM ${table} WHERE NOT ${hasNoControls(column)}`,
      ).map(({ rowid }) => `row ${rowid} of ${table} has a control character in its ${column}`),
    ),
  ],

  /** This finds every other value of a signal that was not sent. */
  hashes: (db) => damagedSignals(db, [0, Number.MAX_SAFE_INTEGER], PROBLEMS_TOLD_MAX),
};

/** In a range of `seq`, and at most `max`. */
export function damagedSignals(db: Database, [from, to]: [number, number], max: number): string[] {
  const sql = "SELECT * FROM signals NOT INDEXED WHERE seq BETWEEN ? AND ?";
  const damaged: string[] = [];
  for (const row of db.query<HashedSignal, [number, number]>(sql).iterate(from, to)) {
    if (isIntact(row)) continue;
    damaged.push(describeDamaged(row));
    if (damaged.length === max) break;
  }
  return damaged;
}

/** Searches would skip these, although they have what is searched for. */
function incompleteBlocks(db: Database): number[] {
  const sql = "SELECT block, symbols, others FROM signal_blocks ORDER BY block";
  const incomplete: number[] = [];
  for (const one of db.query<Listed & { block: number }, []>(sql).iterate()) {
    const { symbols, others } = valuesOf(db, one.block);
    if (!lists(one.symbols, symbols) || !lists(one.others, others)) incomplete.push(one.block);
  }
  return incomplete;
}

const NOT_CHECKED: Check = { ok: null, detail: "not checked" };
const NONE_RAN: Verification["checks"] = {
  schema: NOT_CHECKED,
  ...Object.fromEntries(Object.keys(checks).map((name) => [name, NOT_CHECKED])),
};

function first<Row>(db: Database, sql: string): Row[] {
  return db.query<Row, []>(`${sql} LIMIT ${PROBLEMS_TOLD_MAX}`).all();
}

/**
 * Throws `UserError` if the file is missing, foreign, of a newer version, or has a damaged log. Reads the
 * whole file several times. Meanwhile a server's log grows, because it cannot restart.
 */
export function verifyDatabase(path: string): Verification {
  const found = {
    ok: false,
    file: path,
    version: 0,
    signals: 0,
    newest_id: null,
    checks: NONE_RAN,
  };
  try {
    using db = openSuspect(path);
    const known = { ...found, version: readVersion(db) };
    const schema = checkSchema(db);
    // Alone if it fails: anybody may have made the file, with anything in its schema.
    if (!schema.ok) return { ...known, checks: { ...NONE_RAN, schema } };
    refuseDamaged(db, path);
    return { ...known, ...count(db), ...runChecks(db, schema) };
  } catch (error) {
    const damage = explainFailure(error, path);
    if (!(damage instanceof DamageError)) throw damage;
    const integrity = { ok: false, detail: damage.problem };
    return { ...found, checks: { ...NONE_RAN, integrity } };
  }
}

/** The first check that fails, for a message; null if all are ok. */
export function describeProblem({ checks: results }: Verification): string | null {
  const [name, check] = Object.entries(results).find(([, { ok }]) => ok === false) ?? [];
  return check === undefined ? null : `${name}: ${check.detail}`;
}

function checkSchema(db: Database): Check {
  const problems = describeDifferences(compareSchema(db));
  if (readVersion(db) === 0) problems.unshift("it has no version");
  return checkOf(problems);
}

function runChecks(db: Database, schema: Check): Pick<Verification, "ok" | "checks"> {
  const ran = Object.entries(checks).map(([name, check]) => [name, run(db, check)] as const);
  return { ok: ran.every(([, { ok }]) => ok), checks: { schema, ...Object.fromEntries(ran) } };
}

/** Each in a transaction of its own: one state of the database, held no longer than needed. */
function run(db: Database, check: (db: Database) => string[]): Check {
  db.run("BEGIN");
  try {
    return checkOf(check(db));
  } catch (error) {
    return { ok: false, detail: describeFailure(error) };
  } finally {
    if (db.inTransaction) db.run("ROLLBACK");
  }
}

function checkOf(problems: readonly string[]): Check {
  return { ok: problems.length === 0, detail: problems.join("; ") || "ok" };
}

/** Empty if the signals cannot be read: the checks say why. */
function count(db: Database): Partial<Pick<Verification, "signals" | "newest_id">> {
  try {
    const sql = "SELECT count(*) AS signals, max(id) AS newest_id FROM signals";
    return db.query<{ signals: number; newest_id: string | null }, []>(sql).get() ?? {};
  } catch {
    return {};
  }
}

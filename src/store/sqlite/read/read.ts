/** Opens a database file read-only: creates, upgrades and checkpoints nothing. */
import { Database } from "bun:sqlite";
import { statSync } from "node:fs";
import { UserError } from "../../../lib/errors.ts";
import { DamageError, explainFailure, isBusy, notOurs } from "../files/failures.ts";
import { refuseDamagedLog } from "../log/log-damage.ts";
import {
  APPLICATION_ID,
  currentSchema,
  readApplicationId,
  readVersion,
  schemaVersion,
  UNRELEASED_APPLICATION_ID,
} from "../files/migrate.ts";
import { COMMAND_BUSY_MS, guard } from "../files/transaction.ts";
import { refuseRemovedLog } from "../log/removed-log.ts";

/** Checked at every start: a few megabytes at most. The signals and the audit grow with use. */
const AT_START: ReadonlySet<string> = new Set([
  "desks",
  "api_keys",
  "members",
  "invitations",
  "passkeys",
  "signal_blocks",
]);

/**
 * Waits `busyMs` for another's lock. Throws {@link UserError} if the file is missing, foreign, of a newer
 * version, or visibly damaged.
 */
export function openForReading(path: string, busyMs = COMMAND_BUSY_MS): Database {
  return openFile(path, busyMs, (db) => {
    if (readVersion(db) > 0) refuseDamaged(db, path);
  });
}

/**
 * For `verify`, `backup` and `restore`. Checks the log, then reads only the header of the database: check the
 * schema (`store/sqlite/files/schema.ts`) before anything else.
 */
export function openSuspect(path: string): Database {
  try {
    refuseDamagedLog(path);
    return openFile(path);
  } catch (error) {
    throw explainFailure(error, path);
  }
}

/** Passes on that the file is locked: the caller may wait. */
function openFile(
  path: string,
  busyMs = COMMAND_BUSY_MS,
  check: (db: Database) => void = () => {},
): Database {
  let db: Database | null = null;
  try {
    requireFile(path);
    refuseRemovedLog(path);
    db = new Database(path, { readonly: true, strict: true });
    guard(db, busyMs);
    db.run("PRAGMA cell_size_check = ON");
    const version = readVersion(db);
    refuseForeign(path, readApplicationId(db));
    if (version < 0) throw notOurs(path);
    refuseNewer(path, version);
    check(db);
    return db;
  } catch (error) {
    db?.close();
    throw isBusy(error) ? error : explainFailure(error, path);
  }
}

function requireFile(path: string): void {
  if (statSync(path, { throwIfNoEntry: false }) !== undefined) return;
  throw new UserError(`There is no database at ${path}: name its folder with --data DIR.`);
}

function refuseForeign(path: string, applicationId: number): void {
  if (applicationId === UNRELEASED_APPLICATION_ID) {
    throw new UserError(
      `${path} was made by a build of signalbox from before its first release, and this version cannot read it: move its folder away, or name another one with --data DIR.`,
    );
  }
  if (applicationId !== APPLICATION_ID) throw notOurs(path);
}

function refuseNewer(path: string, version: number): void {
  const newestVersion = schemaVersion(currentSchema);
  if (version <= newestVersion) return;
  throw new UserError(
    `${path} was written by a newer signalbox (database version ${version}; this one knows ${newestVersion}): run that version, or name another file, or another folder with --data DIR.`,
  );
}

/** A quick check at every start: the length of the file, and the tables that stay small. */
export function refuseDamaged(db: Database, path: string): void {
  const problem = missingPages(db, path) ?? problemOfTables(db, (table) => AT_START.has(table));
  if (problem !== null) throw new DamageError(path, problem);
}

/** Reads these tables whole, each with its indexes. An older version has fewer tables. */
export function problemOfTables(db: Database, isChosen: (table: string) => boolean): string | null {
  const tables = db
    .query<{ name: string }, []>("SELECT name FROM sqlite_schema WHERE type = 'table'")
    .all();
  for (const { name } of tables) {
    const problem = isChosen(name) ? firstProblem(db, name) : null;
    if (problem !== null) return problem;
  }
  return null;
}

/** Compares the file's size with its number of pages, unless the log may have some of them. */
function missingPages(db: Database, path: string): string | null {
  const { pages, bytes } = db
    .query(
      "SELECT page_count AS pages, page_size AS bytes FROM pragma_page_count, pragma_page_size",
    )
    .get() as { pages: number; bytes: number };
  // One `stat`: another process may remove the log at any moment.
  const log = statSync(`${path}-wal`, { throwIfNoEntry: false });
  if (log !== undefined && log.size > 0) return null;
  const size = statSync(path).size;
  return size < pages * bytes ? `it has ${size} bytes of ${pages * bytes}` : null;
}

function firstProblem(db: Database, table: string): string | null {
  const [problem] = integrityProblems(db, `'${table}'`);
  return problem === undefined ? null : `table ${table}: ${problem}`;
}

/**
 * Returns one line per problem. `what`: a table's name in quotes, or the number of problems to look for in
 * the whole file.
 */
export function integrityProblems(db: Database, what: string | number): string[] {
  return (db.query(`PRAGMA integrity_check(${what})`).values() as string[][])
    .flat()
    .flatMap((row) => row.split("\n"))
    .filter((line) => line !== "ok" && line !== "*** in database main ***");
}

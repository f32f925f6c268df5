/** Copies a database, in use or not, to a file that can be trusted: consistent, on disk, and verified. */
import { constants, Database } from "bun:sqlite";
import {
  closeSync,
  existsSync,
  fsyncSync,
  openSync,
  readdirSync,
  renameSync,
  rmSync,
  statSync,
} from "node:fs";
import { basename, dirname, join } from "node:path";
import { pathToFileURL } from "node:url";
import { UserError } from "../../domain/errors.ts";
import { explainFailure, isRefusedWrite } from "./failures.ts";
import { openForReading } from "./read.ts";
import { type Verification, verifyDatabase } from "./verify.ts";

/** Rows of one short transaction: about ten milliseconds. */
const CHUNK_ROWS = 2_000;
const CACHE_KIB = 65_536;
const BUSY_TIMEOUT_MS = 10_000;

/**
 * Of one moment: all that was committed when it began, and nothing that came after. Written beside
 * `to` with mode 0600, synced, verified, and renamed, so that `to` is the old file or the whole new
 * one, at any time. Blocks this thread for as long as it takes: see `copying.ts`. Throws `UserError`
 * where a file cannot be used, or the copy turns out to be damaged.
 */
export function copyDatabase(from: string, to: string): Verification {
  removeAbandoned(to);
  const partial = partialPath(to, process.pid);
  try {
    write(from, partial);
    syncPath(partial);
    const verification = verifyDatabase(partial);
    if (!verification.ok) throw unsound(from, verification);
    renameSync(partial, to);
    syncPath(dirname(to));
    return { ...verification, file: to };
  } catch (error) {
    rmSync(partial, { force: true });
    throw error;
  }
}

/** Where a process writes a copy before it deserves its name. */
export function partialPath(to: string, pid: number): string {
  return join(dirname(to), `.${basename(to)}.${pid}.partial`);
}

/** Waits until a file, or the names in a folder, are on disk. */
export function syncPath(path: string): void {
  const fd = openSync(path, "r");
  try {
    fsyncSync(fd);
  } finally {
    closeSync(fd);
  }
}

function write(from: string, partial: string): void {
  openForReading(from).close();
  // Exclusive: nothing that is there is overwritten.
  closeSync(openSync(partial, "wx", 0o600));
  const db = openForCopying(from, partial);
  try {
    copyTables(db, from);
  } catch (error) {
    throw explainFailure(error, isRefusedWrite(error) ? partial : from);
  } finally {
    db.close();
  }
}

/** The copy, with the original beside it as `source`, which this connection cannot write to. */
function openForCopying(from: string, partial: string): Database {
  const { SQLITE_OPEN_READWRITE, SQLITE_OPEN_URI } = constants;
  const db = new Database(partial, SQLITE_OPEN_READWRITE | SQLITE_OPEN_URI);
  db.run("PRAGMA trusted_schema = OFF");
  // Until it has its name the copy is worth nothing: it is synced once, when it is complete.
  db.run("PRAGMA journal_mode = OFF");
  db.run("PRAGMA synchronous = OFF");
  db.run(`PRAGMA cache_size = -${CACHE_KIB}`);
  db.run(`PRAGMA busy_timeout = ${BUSY_TIMEOUT_MS}`);
  db.query("ATTACH ? AS source").run(`${pathToFileURL(from).href}?mode=ro`);
  return db;
}

/**
 * In short transactions, because a server's log cannot be begun anew while somebody reads an older
 * state: one `VACUUM INTO` beside 10,000 signals a second made the log grow by 80 MiB a second, and the
 * server three times slower. Tables with a `seq` only ever grow (`schema.sql`), so their rows up to the
 * newest one of the first transaction are, whenever they are read, of that moment.
 */
function copyTables(db: Database, from: string): void {
  db.run("BEGIN");
  for (const sql of definitions(db, "table")) db.run(sql);
  copyHeader(db);
  const growing: { table: string; newest: number }[] = [];
  for (const table of tableNames(db)) {
    const newest = newestSeq(db, table);
    if (newest === null) db.run(`INSERT INTO main.${table} SELECT * FROM source.${table}`);
    else growing.push({ table, newest });
  }
  db.run("COMMIT");
  for (const { table, newest } of growing) copyRows(db, from, table, newest);
  // Sorted once, instead of row by row at random places.
  for (const sql of definitions(db, "index")) db.run(sql);
}

function copyRows(db: Database, from: string, table: string, newest: number): void {
  const copy = db.query(
    `INSERT INTO main.${table} SELECT * FROM source.${table} WHERE seq > ? AND seq <= ?`,
  );
  for (let seq = 0; seq < newest; seq += CHUNK_ROWS) {
    const startedAt = performance.now();
    copy.run(seq, Math.min(newest, seq + CHUNK_ROWS));
    // Half of the time nobody reads, so that the log's next beginning is not missed each time.
    if (isInUse(from)) Bun.sleepSync(performance.now() - startedAt);
  }
}

/** The last one to close a database removes its log. */
function isInUse(path: string): boolean {
  return existsSync(`${path}-wal`) && statSync(`${path}-wal`).size > 0;
}

/** Whose file it is, and which version. */
function copyHeader(db: Database): void {
  for (const name of ["application_id", "user_version"]) {
    const row = db.query<Record<string, number>, []>(`PRAGMA source.${name}`).get();
    db.run(`PRAGMA main.${name} = ${row?.[name]}`);
  }
}

function definitions(db: Database, type: "table" | "index"): string[] {
  return db
    .query<{ sql: string }, [string]>(
      "SELECT sql FROM source.sqlite_schema WHERE type = ? AND sql IS NOT NULL AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\'",
    )
    .all(type)
    .map(({ sql }) => sql);
}

function tableNames(db: Database): string[] {
  return db
    .query<{ name: string }, []>("SELECT name FROM main.sqlite_schema WHERE type = 'table'")
    .all()
    .map(({ name }) => name);
}

/** Null for a table whose rows may change; 0 for a growing one that is empty. */
function newestSeq(db: Database, table: string): number | null {
  const columns = db
    .query<{ name: string; pk: number }, [string]>("SELECT name, pk FROM pragma_table_info(?)")
    .all(table);
  if (!columns.some(({ name, pk }) => name === "seq" && pk === 1)) return null;
  const row = db.query<{ seq: number | null }, []>(`SELECT max(seq) AS seq FROM source.${table}`);
  return row.get()?.seq ?? 0;
}

/** What copies that were killed have left in the folder. */
function removeAbandoned(to: string): void {
  const folder = dirname(to);
  for (const name of readdirSync(folder)) {
    const pid = /^\..+\.(\d+)\.partial$/.exec(name)?.[1];
    if (pid !== undefined && !isRunning(Number(pid))) rmSync(join(folder, name), { force: true });
  }
}

function isRunning(pid: number): boolean {
  if (pid === process.pid) return false;
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return error instanceof Error && "code" in error && error.code === "EPERM";
  }
}

function unsound(from: string, { checks }: Verification): UserError {
  const [name, check] = Object.entries(checks).find(([, { ok }]) => !ok) ?? [];
  return new UserError(
    `The copy of ${from} is not sound (${name}: ${check?.detail}): look at the original with: signalbox verify --data DIR`,
  );
}

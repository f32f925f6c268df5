/** Copies a database, in use or not, to a file that can be trusted: consistent, on disk, and verified. */
import { constants, Database, SQLiteError } from "bun:sqlite";
import {
  closeSync,
  fsyncSync,
  openSync,
  readdirSync,
  readSync,
  renameSync,
  rmSync,
  statSync,
} from "node:fs";
import { shellQuoted } from "../../domain/shell.ts";
import { basename, dirname, join } from "node:path";
import { pathToFileURL } from "node:url";
import { systemCode, UserError } from "../../domain/errors.ts";
import { DamageError, explainFailure, isRefusedWrite } from "./failures.ts";
import { openForReading } from "./read.ts";
import {
  compareSchema,
  describeObjects,
  expectedObjects,
  quoteName,
  type SchemaObject,
} from "./schema.ts";
import { readVersion } from "./migrate.ts";
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
  const partial = partialPath(to, process.pid);
  try {
    removeAbandoned(dirname(to));
    write(from, partial, to);
    syncPath(partial);
    const verification = verifyDatabase(partial);
    if (!verification.ok) throw unsound(from, verification);
    renameSync(partial, to);
    syncPath(dirname(to));
    return { ...verification, file: to };
  } catch (error) {
    rmSync(partial, { force: true });
    throw explainSystemFailure(error, to);
  }
}

/** Where a process writes a copy before it deserves its name. */
export function partialPath(to: string, pid: number): string {
  return join(dirname(to), `.${basename(to)}.${pid}.signalbox-partial`);
}

/**
 * Whether a file is what {@link copyDatabase} makes: a sound database of ours at first glance, and not
 * one that a server has in use, for those have their log turned on.
 */
export function isCopy(path: string): boolean {
  try {
    if (isWithLog(path)) return false;
    openForReading(path).close();
    return true;
  } catch {
    return false;
  }
}

/** By its header, for to open it would make a log (https://sqlite.org/fileformat2.html, offset 18). */
function isWithLog(path: string): boolean {
  const header = Buffer.alloc(20);
  const fd = openSync(path, "r");
  try {
    readSync(fd, header, 0, header.length, 0);
  } finally {
    closeSync(fd);
  }
  return header[18] !== 1;
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

function write(from: string, partial: string, to: string): void {
  openForReading(from).close();
  // Exclusive: nothing that is there is overwritten.
  closeSync(openSync(partial, "wx", 0o600));
  const db = openForCopying(from, partial);
  try {
    copyTables(db, from);
  } catch (error) {
    throw explainCopying(error, from, to);
  } finally {
    db.close();
  }
}

/** The copy, with the original beside it as `source`, which this connection cannot write to. */
function openForCopying(from: string, partial: string): Database {
  const { SQLITE_OPEN_READWRITE, SQLITE_OPEN_URI } = constants;
  const db = new Database(partial, SQLITE_OPEN_READWRITE | SQLITE_OPEN_URI);
  db.run("PRAGMA trusted_schema = OFF");
  db.run("PRAGMA cell_size_check = ON");
  // Until it has its name the copy is worth nothing: it needs no journal on the disk, and is synced
  // once, when it is complete.
  db.run("PRAGMA journal_mode = MEMORY");
  db.run("PRAGMA synchronous = OFF");
  db.run(`PRAGMA cache_size = -${CACHE_KIB}`);
  db.run(`PRAGMA busy_timeout = ${BUSY_TIMEOUT_MS}`);
  db.query("ATTACH ? AS source").run(`${pathToFileURL(from).href}?mode=ro`);
  return db;
}

/**
 * Copies Signalbox's own tables, by its own definitions: it uses no name and no SQL of the original, which
 * anybody may have made. In short transactions, because a server's log cannot start again while somebody
 * reads an older state: one `VACUUM INTO` beside 10,000 signals a second made the log grow by 80 MiB a
 * second, and the server three times slower. Tables with a `seq` only ever grow (`schema.sql`), so their
 * rows up to the newest one of the first transaction show that moment, whenever they are read.
 */
function copyTables(db: Database, from: string): void {
  db.run("BEGIN");
  refuseOtherTables(db, from);
  const created = expectedObjects(readVersion(db, "source"));
  for (const sql of definitions(created, "table")) db.run(sql);
  copyHeader(db);
  const growing: { table: string; newest: Newest }[] = [];
  for (const table of tableNames(db)) {
    if (isGrowing(db, table)) growing.push({ table, newest: findNewest(db, table, from) });
    else db.run(`INSERT INTO main.${quoteName(table)} SELECT * FROM source.${quoteName(table)}`);
  }
  db.run("COMMIT");
  for (const { table, newest } of growing) copyRows(db, from, table, newest);
  // Sorted once, instead of row by row at random places.
  for (const sql of definitions(created, "index")) db.run(sql);
}

/** The newest row of a growing table: the last of its `seq`, and of its ids, which rise with it. */
interface Newest {
  readonly seq: number;
  readonly id: string;
}

/**
 * Reading a table whose pages are damaged may skip rows without a word, and the copy, with indexes of its
 * own, would be sound without them. So each part is held against the index of the original's ids.
 */
function copyRows(db: Database, from: string, table: string, newest: Newest): void {
  const name = quoteName(table);
  const copy = db.query(
    `INSERT INTO main.${name} SELECT * FROM source.${name} NOT INDEXED
     WHERE seq > ? AND seq <= ? ORDER BY seq LIMIT ${CHUNK_ROWS}`,
  );
  const last = db.query<Newest, []>(`SELECT seq, id FROM main.${name} ORDER BY seq DESC LIMIT 1`);
  const indexed = db.query<{ n: number }, [string, string]>(
    `SELECT count(*) AS n FROM source.${name} WHERE id > ? AND id <= ?`,
  );
  let done: Newest = { seq: Number.MIN_SAFE_INTEGER, id: "" };
  while (done.seq < newest.seq) {
    const startedAt = performance.now();
    const { changes } = copy.run(done.seq, newest.seq);
    const next = (changes < CHUNK_ROWS ? null : last.get()) ?? newest;
    const entries = indexed.get(done.id, next.id)?.n;
    if (entries !== changes) throw skipped(from, table, `${changes} rows for ${entries} ids`);
    done = next;
    // Half of the time nobody reads, so that the log's next beginning is not missed each time.
    if (isInUse(from)) Bun.sleepSync(performance.now() - startedAt);
  }
}

/** The last one to close a database removes its log. */
function isInUse(path: string): boolean {
  return (statSync(`${path}-wal`, { throwIfNoEntry: false })?.size ?? 0) > 0;
}

/** Whose file it is, and which version. */
function copyHeader(db: Database): void {
  for (const name of ["application_id", "user_version"]) {
    const row = db.query<Record<string, number>, []>(`PRAGMA source.${name}`).get();
    db.run(`PRAGMA main.${name} = ${row?.[name]}`);
  }
}

/** What others added is left behind; a table of ours that was changed cannot be copied. */
function refuseOtherTables(db: Database, from: string): void {
  const missing = compareSchema(db, "source").missing.filter(({ type }) => type === "table");
  if (missing.length === 0) return;
  throw new UserError(
    `${from} does not have Signalbox's schema (missing or changed: ${describeObjects(missing)}): undo the change, or restore a backup with: signalbox restore FILE --data ${shellQuoted(dirname(from))} --force`,
  );
}

function definitions(objects: readonly SchemaObject[], wanted: "table" | "index"): string[] {
  return objects.flatMap(({ type, sql }) => (type === wanted && sql !== null ? [sql] : []));
}

function tableNames(db: Database): string[] {
  return db
    .query<{ name: string }, []>("SELECT name FROM main.sqlite_schema WHERE type = 'table'")
    .all()
    .map(({ name }) => name);
}

function isGrowing(db: Database, table: string): boolean {
  return db
    .query<{ name: string; pk: number }, [string]>("SELECT name, pk FROM pragma_table_info(?)")
    .all(table)
    .some(({ name, pk }) => name === "seq" && pk === 1);
}

/** By the table and by the index of its ids, which must agree. */
function findNewest(db: Database, table: string, from: string): Newest {
  const byTable = db.query<{ seq: number | null }, []>(
    `SELECT max(seq) AS seq FROM source.${quoteName(table)}`,
  );
  const seq = byTable.get()?.seq ?? null;
  const byIndex = db.query<Newest, []>(
    `SELECT seq, id FROM source.${quoteName(table)} ORDER BY id DESC LIMIT 1`,
  );
  const newest = byIndex.get();
  if ((newest?.seq ?? null) !== seq) throw skipped(from, table, "its newest row and id differ");
  return newest ?? { seq: Number.MIN_SAFE_INTEGER, id: "" };
}

function skipped(from: string, table: string, problem: string): UserError {
  return new DamageError(from, `table ${table}: ${problem}`);
}

/** What copies that were killed have left in the folder. */
function removeAbandoned(folder: string): void {
  for (const name of readdirSync(folder)) {
    const pid = /^\..+\.(\d+)\.signalbox-partial$/.exec(name)?.[1];
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
    `The copy of ${from} is not sound (${name}: ${check?.detail}): look at the original`,
    `verify ${shellQuoted(from)}`,
  );
}

function explainCopying(error: unknown, from: string, to: string): unknown {
  if (!(error instanceof SQLiteError)) return error;
  if (isRefusedWrite(error)) return explainFailure(error, to);
  // What the original holds could not have got into it.
  if (error.code?.startsWith("SQLITE_CONSTRAINT") === true)
    return new DamageError(from, error.message);
  return explainFailure(error, from);
}

/** Of the target or its folder. Other errors pass through. */
function explainSystemFailure(error: unknown, to: string): unknown {
  const isOfSystem = error instanceof Error && "syscall" in error;
  if (!isOfSystem) return error;
  return new UserError(
    `${to} cannot be written (${systemCode(error)}): name a file in a folder that this user may write to, on a disk with free space.`,
  );
}

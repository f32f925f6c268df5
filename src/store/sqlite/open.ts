/** Opens `signalbox.db` in a data folder: permissions, whose file it is, its version, the pragmas. */
import { constants, Database } from "bun:sqlite";
import { closeSync, existsSync, openSync, statSync } from "node:fs";
import { dirname, join } from "node:path";
import { systemCode, UserError } from "../../domain/errors.ts";
import { shellQuoted } from "../../domain/shell.ts";
import {
  DATABASE_NAME,
  type OnTightened,
  prepareFolder,
  requireDatabase,
  restoringPath,
  sayOnStderr,
  tighten,
} from "./folder.ts";
import { explainFailure, isBusy } from "./failures.ts";
import { lockFolder } from "./lock.ts";
import { refuseDamagedLog } from "./log-damage.ts";
import {
  APPLICATION_ID,
  currentSchema,
  migrate,
  readApplicationId,
  readVersion,
  type Schema,
  schemaVersion,
} from "./migrate.ts";
import { openForReading } from "./read.ts";

/** Who opens: the thread that commits, the one that copies the log, the one that answers HTTP, the console's, or a command. */
export type Role = "writer" | "checkpointer" | "reader" | "console" | "command";

/**
 * How long a connection waits for another's lock, in milliseconds. In WAL mode only writers wait for
 * each other; the reader meets a lock only while the log is being recovered.
 */
const busyTimeoutMs: Record<Role, number> = {
  writer: 5_000,
  checkpointer: 5_000,
  reader: 1_000,
  console: 10_000,
  command: 10_000,
};

const OPEN_RETRY_MS = 20;
const LOG_BYTES_KEPT = 64 * 1024 * 1024;

export interface OpenOptions {
  readonly schema?: Schema;
  /** Refuses a folder without a database instead of creating one. */
  readonly mustExist?: boolean;
  /** {@link sayOnStderr} if not given. */
  readonly onTightened?: OnTightened | undefined;
  /** Another program, such as Litestream, copies the log into the database, and must find it there. */
  readonly externalCheckpoints?: boolean;
}

/** Pages kept in memory, in KiB. The writer's are for the unique index, where random ids are all over it. */
const cacheKib: Record<Role, number> = {
  writer: 65_536,
  checkpointer: 2_048,
  reader: 2_048,
  console: 16_384,
  command: 2_048,
};

/**
 * Opens the database for a role, creating or upgrading it first if needed. Throws
 * {@link UserError} where the folder or file cannot be used, with what to do about it.
 */
export function openDatabase(dataDir: string, role: Role, options: OpenOptions = {}): Database {
  if (options.mustExist === true) requireDatabase(dataDir);
  prepareFolder(dataDir, options.onTightened ?? sayOnStderr);
  const path = join(dataDir, DATABASE_NAME);
  const deadline = performance.now() + busyTimeoutMs[role];
  for (;;) {
    try {
      return openFile(path, role, options);
    } catch (error) {
      if (error instanceof UserError) throw error;
      // SQLite does not wait for a lock where it turns WAL on or recovers it: processes that start at once meet there.
      if (!isBusy(error) || performance.now() > deadline) throw explainFailure(error, path);
      Bun.sleepSync(OPEN_RETRY_MS);
    }
  }
}

function openFile(path: string, role: Role, options: OpenOptions): Database {
  const { schema = currentSchema, onTightened = sayOnStderr } = options;
  if (isEmpty(path)) create(path);
  const isLogKept =
    options.externalCheckpoints === true || (role === "command" && !isEmpty(`${path}-wal`));
  // A server's reader opens first: its other threads need not check again.
  if (role === "reader") refuseDamagedLog(path);
  if (role === "reader" || role === "command") inspect(path, schemaVersion(schema), onTightened);
  const db = new Database(path, { create: false, readwrite: true, strict: true });
  try {
    configure(db, role);
    // What a long reader made the log grow beyond this is given back.
    if (role === "writer" && !isLogKept) db.run(`PRAGMA journal_size_limit = ${LOG_BYTES_KEPT}`);
    // The last connection to close would remove it.
    if (isLogKept) db.fileControl(constants.SQLITE_FCNTL_PERSIST_WAL, 1);
    upgrade(db, dirname(path), role, schema);
    return db;
  } catch (error) {
    db.close();
    throw error;
  }
}

/** 0600 from its first byte on; SQLite gives the log the same mode. Never where there was a database. */
function create(path: string): void {
  if (existsSync(restoringPath(path))) {
    throw new UserError(
      `A restore into ${dirname(path)} was cut short: run it again, with: signalbox restore FILE --data ${shellQuoted(dirname(path))} --force`,
    );
  }
  // Looked at once more after its log: another process may have made both since.
  if (!isEmpty(`${path}-wal`) && isEmpty(path)) {
    throw new UserError(
      `${path} is missing or empty, but its log ${path}-wal is there: put the database back beside it, or move the log away to begin with an empty one.`,
    );
  }
  closeSync(openSync(path, "a", 0o600));
}

function inspect(path: string, newestVersion: number, onTightened: OnTightened): void {
  const files = [path, `${path}-wal`, `${path}-shm`];
  const wereThere = files.filter((file) => existsSync(file));
  if (!isEmpty(path)) openForReading(path, newestVersion).close();
  for (const file of files) {
    // What reading it has made has its mode, too, but nothing in it that others could have read.
    tightenIfThere(file, wereThere.includes(file) ? onTightened : () => {});
  }
}

/** The last process to close a database takes its log away, at any moment. */
function tightenIfThere(file: string, onTightened: OnTightened): void {
  try {
    tighten(file, onTightened);
  } catch (error) {
    if (systemCode(error) !== "ENOENT") throw error;
  }
}

function isEmpty(path: string): boolean {
  return (statSync(path, { throwIfNoEntry: false })?.size ?? 0) === 0;
}

function configure(db: Database, role: Role): void {
  db.run(`PRAGMA busy_timeout = ${busyTimeoutMs[role]}`);
  db.run("PRAGMA trusted_schema = OFF");
  db.run("PRAGMA foreign_keys = ON");
  db.run(`PRAGMA cache_size = -${cacheKib[role]}`);
  // Before WAL is turned on, so that the file itself says whose it is from its first page on.
  if (readApplicationId(db) !== APPLICATION_ID) db.run(`PRAGMA application_id = ${APPLICATION_ID}`);
  db.run("PRAGMA journal_mode = WAL");
  db.run("PRAGMA synchronous = FULL");
  // The server has its own (`checkpoint.ts`), and commands leave the log to it: SQLite would pass over
  // a failed fsync in silence here, and begin the log anew although the database is not on disk.
  db.run("PRAGMA wal_autocheckpoint = 0");
}

/** A server that runs an older version must not have its tables changed under it by a newer command. */
function upgrade(db: Database, dataDir: string, role: Role, schema: Schema): void {
  const version = readVersion(db);
  if (version === schemaVersion(schema)) return;
  const lock = role === "command" && version > 0 ? lockFolder(dataDir) : null;
  try {
    migrate(db, schema);
  } finally {
    lock?.release();
  }
}

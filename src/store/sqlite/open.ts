/** Opens `signalbox.db` in a data folder: permissions, whose file it is, its version, the pragmas. */
import { Database, SQLiteError } from "bun:sqlite";
import { closeSync, existsSync, openSync, statSync } from "node:fs";
import { dirname, join } from "node:path";
import { UserError, systemCode } from "../../domain/errors.ts";
import { DATABASE_NAME, type OnTightened, prepareFolder, sayOnStderr, tighten } from "./folder.ts";
import { isBusy } from "./failures.ts";
import { lockFolder } from "./lock.ts";
import {
  APPLICATION_ID,
  currentSchema,
  migrate,
  readVersion,
  type Schema,
  schemaVersion,
} from "./migrate.ts";

/** Who opens: the thread that commits, the one that copies the log, the one that answers HTTP, or a command. */
export type Role = "writer" | "checkpointer" | "reader" | "command";

/**
 * How long a connection waits for another's lock, in milliseconds. In WAL mode only writers wait for
 * each other; the reader meets a lock only while the log is being recovered.
 */
const busyTimeoutMs: Record<Role, number> = {
  writer: 5_000,
  checkpointer: 5_000,
  reader: 1_000,
  command: 10_000,
};

/** A log of 256 MiB, only reached where the checkpointer cannot keep up: then a commit copies it. */
const LOG_PAGES_MAX = 65_536;

const OPEN_RETRY_MS = 20;

export interface OpenOptions {
  readonly schema?: Schema;
  /** {@link sayOnStderr} if not given. */
  readonly onTightened?: OnTightened | undefined;
}

/** Pages kept in memory, in KiB. The writer's hold the inner pages of the deduplication index. */
const cacheKib: Record<Role, number> = {
  writer: 65_536,
  checkpointer: 2_048,
  reader: 2_048,
  command: 2_048,
};

/**
 * Opens the database for a role, creating or upgrading it first where needed. Throws
 * {@link UserError} where the folder or file cannot be used, with what to do about it.
 */
export function openDatabase(dataDir: string, role: Role, options: OpenOptions = {}): Database {
  const { schema = currentSchema, onTightened = sayOnStderr } = options;
  prepareFolder(dataDir, onTightened);
  const path = join(dataDir, DATABASE_NAME);
  const deadline = performance.now() + busyTimeoutMs[role];
  for (;;) {
    try {
      return openFile(path, role, schema, onTightened);
    } catch (error) {
      if (error instanceof UserError) throw error;
      // SQLite does not wait for a lock where it turns WAL on or recovers it: processes that start at once meet there.
      if (!isBusy(error) || performance.now() > deadline) throw explain(error, path);
      Bun.sleepSync(OPEN_RETRY_MS);
    }
  }
}

function openFile(path: string, role: Role, schema: Schema, onTightened: OnTightened): Database {
  prepareFile(path, schemaVersion(schema), onTightened);
  const db = new Database(path, { create: false, readwrite: true, strict: true });
  try {
    configure(db, role);
    upgrade(db, dirname(path), role, schema);
    return db;
  } catch (error) {
    db.close();
    throw error;
  }
}

/** Makes the file 0600 from its first byte on (SQLite gives the log the same mode), or checks whose it is. */
function prepareFile(path: string, newestVersion: number, onTightened: OnTightened): void {
  if (!existsSync(path)) {
    closeSync(openSync(path, "a", 0o600));
    return;
  }
  const files = [path, `${path}-wal`, `${path}-shm`];
  const wereThere = files.filter((file) => existsSync(file));
  if (statSync(path).size > 0) refuseForeignFile(path, newestVersion);
  for (const file of files.filter((name) => existsSync(name))) {
    // What reading it has made has its mode, too, but nothing in it that others could have read.
    tighten(file, 0o600, wereThere.includes(file) ? onTightened : () => {});
  }
}

/** Reads what the file says of itself without writing to it. Throws {@link UserError}. */
function refuseForeignFile(path: string, newestVersion: number): void {
  const db = new Database(path, { readonly: true });
  try {
    if (readApplicationId(db) !== APPLICATION_ID) throw notOurs(path);
    const version = readVersion(db);
    if (version > newestVersion) {
      throw new UserError(
        `${path} was written by a newer signalbox (database version ${version}; this one knows ${newestVersion}): run that version, or name another folder with --data DIR.`,
      );
    }
  } finally {
    db.close();
  }
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
  if (role === "writer") db.run(`PRAGMA wal_autocheckpoint = ${LOG_PAGES_MAX}`);
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

function readApplicationId(db: Database): number {
  return (db.query("PRAGMA application_id").get() as { application_id: number }).application_id;
}

function notOurs(path: string): UserError {
  return new UserError(
    `${path} is not a Signalbox database, and was left as it is: name another folder with --data DIR.`,
  );
}

/** One sentence about why the database did not open. Errors that are not about the file pass through. */
function explain(error: unknown, path: string): unknown {
  if (!(error instanceof SQLiteError)) {
    return new UserError(
      `${path} cannot be used (${systemCode(error)}): run signalbox as the user who owns it, or name another folder with --data DIR.`,
    );
  }
  const code = error.code ?? "";
  if (code === "SQLITE_NOTADB") return notOurs(path);
  if (code.startsWith("SQLITE_CORRUPT")) {
    return new UserError(
      `${path} is damaged (${error.message}): stop every signalbox on it, keep a copy, and restore a backup.`,
    );
  }
  if (isBusy(error)) {
    return new UserError(
      `${path} is locked by another process: wait for it or end it, then try again.`,
    );
  }
  if (code.startsWith("SQLITE_FULL")) {
    return new UserError(`The disk of ${path} is full: free some space, then try again.`);
  }
  return new UserError(
    `${path} cannot be used (${code}: ${error.message}): run signalbox as the user who owns it, or name another folder with --data DIR.`,
  );
}

/** Opens `signalbox.db` in a data folder: checks permissions, owner and version, and sets the pragmas. */
import { constants, Database } from "bun:sqlite";
import { closeSync, existsSync, openSync } from "node:fs";
import { dirname, join } from "node:path";
import { UserError } from "../../../lib/errors.ts";
import { shellQuoted } from "../../../lib/text/shell.ts";
import type { Awaitable } from "../../../domain/storage/awaitable.ts";
import { checkFolder, copyingPath, DATABASE_NAME, prepareFolder, restoringPath } from "./folder.ts";
import { type OnTightened, sayOnStderr, tighten } from "./permissions.ts";
import { explainFailure } from "./failures.ts";
import { lockFolder } from "./lock.ts";
import { isEmpty, refuseDamagedLog, refuseLoneLog } from "../log/log-damage.ts";
import {
  APPLICATION_ID,
  currentSchema,
  migrate,
  readApplicationId,
  readVersion,
  schemaVersion,
} from "./migrate.ts";
import { openForReading } from "../read/read.ts";
import { inodeOf, refuseRemovedLog, rememberLog } from "../log/removed-log.ts";
import { COMMAND_BUSY_MS, guard, RETRY_MS, retryWhileBusy } from "./transaction.ts";

/** The threads of a server (commits, checkpoints, HTTP, console), and commands. */
type Role = "writer" | "checkpointer" | "reader" | "console" | "command";

/**
 * `busyMs`: how long a connection waits for another's lock. In WAL mode only writers wait for each other;
 * readers wait only while the log is being recovered. `cacheKib`: its page cache. The writer's holds the
 * unique index, which random ids touch everywhere.
 */
const roles: Record<Role, { readonly busyMs: number; readonly cacheKib: number }> = {
  writer: { busyMs: 5_000, cacheKib: 32_768 },
  checkpointer: { busyMs: 5_000, cacheKib: 2_048 },
  reader: { busyMs: 1_000, cacheKib: 2_048 },
  console: { busyMs: 10_000, cacheKib: 16_384 },
  command: { busyMs: COMMAND_BUSY_MS, cacheKib: 2_048 },
};

const LOG_BYTES_KEPT = 64 * 1024 * 1024;

interface OpenOptions {
  /** {@link sayOnStderr} if not given. */
  readonly onTightened?: OnTightened | undefined;
  /** Another program, such as Litestream, does the checkpoints, so the log must stay. */
  readonly externalCheckpoints?: boolean;
}

/**
 * Opens the database for a role, creating or upgrading it first if needed. Throws
 * {@link UserError} if the folder or file cannot be used, with what to do about it.
 */
export function openDatabase(dataDir: string, role: Role, options: OpenOptions = {}): Database {
  const path = join(dataDir, DATABASE_NAME);
  const { busyMs } = roles[role];
  const deadline = performance.now() + busyMs;
  for (;;) {
    prepareFolder(dataDir, options.onTightened ?? sayOnStderr);
    const inode = inodeOf(path);
    try {
      // SQLite does not wait for the lock when it turns WAL on or recovers the log, as processes that start at once do.
      return retryWhileBusy(busyMs, () => openFile(path, role, options));
    } catch (error) {
      const isMoved = inode !== null && inodeOf(path) !== inode;
      if (!isMoved || performance.now() > deadline) throw explainFailure(error, path);
      // A restore moves it, and soon has the new one in its place.
      while (inodeOf(path) === null && performance.now() < deadline) Bun.sleepSync(RETRY_MS);
    }
  }
}

function openFile(path: string, role: Role, options: OpenOptions): Database {
  if (isEmpty(path)) create(path);
  const isLogKept =
    options.externalCheckpoints === true || (role === "command" && !isEmpty(`${path}-wal`));
  // A server's reader opens first: its other threads need not check again.
  if (role === "reader") refuseDamagedLog(path);
  if (role === "reader" || role === "command") inspect(path, options.onTightened ?? sayOnStderr);
  refuseRemovedLog(path);
  const db = new Database(path, { create: false, readwrite: true, strict: true });
  try {
    configure(db, role);
    // Shrinks the log again after a long read made it grow.
    if (role === "writer" && !isLogKept) db.run(`PRAGMA journal_size_limit = ${LOG_BYTES_KEPT}`);
    // Otherwise SQLite removes the log when the last connection closes.
    if (isLogKept) db.fileControl(constants.SQLITE_FCNTL_PERSIST_WAL, 1);
    upgrade(db, dirname(path), role);
    rememberLog(db);
    return db;
  } catch (error) {
    db.close();
    throw error;
  }
}

/**
 * Throws what {@link openDatabase} would throw in a server. Creates and changes nothing. Returns null
 * without a database.
 */
export async function readDatabase<T>(
  dataDir: string,
  read: (db: Database) => Awaitable<T>,
): Promise<T | null> {
  checkFolder(dataDir);
  const path = join(dataDir, DATABASE_NAME);
  try {
    if (isEmpty(path)) {
      refuseLeftovers(path);
      return null;
    }
    const hasLog = existsSync(`${path}-wal`);
    refuseDamagedLog(path);
    const result = await readAndClose(openForReading(path), read);
    // Reading leaves an empty log behind; a connection that may write removes it when it closes.
    if (!hasLog) {
      await readAndClose(new Database(path, { create: false, readwrite: true }), readVersion);
    }
    return result;
  } catch (error) {
    throw explainFailure(error, path);
  }
}

async function readAndClose<T>(opened: Database, read: (db: Database) => Awaitable<T>): Promise<T> {
  using db = opened;
  return await read(db);
}

/** Creates the file with mode 0600, which SQLite gives the log as well. Never replaces a database. */
function create(path: string): void {
  refuseLeftovers(path);
  closeSync(openSync(path, "a", 0o600));
}

function refuseLeftovers(path: string): void {
  if (existsSync(restoringPath(path))) {
    throw new UserError(
      `A restore into ${dirname(path)} was interrupted: run it again, with: signalbox restore FILE --data ${shellQuoted(dirname(path))} --force`,
    );
  }
  if (existsSync(copyingPath(path))) {
    throw new UserError(
      `A copy into ${dirname(path)} is not complete: type the same signalbox copy again, and it goes on.`,
    );
  }
  refuseLoneLog(path);
}

function inspect(path: string, onTightened: OnTightened): void {
  const files = [path, `${path}-wal`, `${path}-shm`];
  const wereThere = files.filter((file) => existsSync(file));
  if (!isEmpty(path)) openForReading(path).close();
  for (const file of files) {
    // Files that reading has just created are tightened, too, without a message.
    tighten(file, wereThere.includes(file) ? onTightened : () => {});
  }
}

function configure(db: Database, role: Role): void {
  guard(db, roles[role].busyMs);
  db.run(`PRAGMA cache_size = -${roles[role].cacheKib}`);
  // Before WAL is turned on, so that the file's first page has it.
  if (readApplicationId(db) !== APPLICATION_ID) db.run(`PRAGMA application_id = ${APPLICATION_ID}`);
  db.run("PRAGMA journal_mode = WAL");
  db.run("PRAGMA synchronous = FULL");
  // The server does checkpoints itself (`store/sqlite/append/checkpointer.ts`): an automatic one ignores a failed fsync, and
  // restarts the log although the database is not on disk.
  db.run("PRAGMA wal_autocheckpoint = 0");
  // A temporary file takes a descriptor, and clients may have them all.
  if (role === "writer") db.run("PRAGMA temp_store = MEMORY");
}

/** Takes the folder's lock for a command: it must not change the tables of a running older server. */
function upgrade(db: Database, dataDir: string, role: Role): void {
  const version = readVersion(db);
  if (version === schemaVersion(currentSchema)) return;
  using _lock = role === "command" && version > 0 ? lockFolder(dataDir) : null;
  migrate(db);
}

/**
 * Chooses the storage: SQLite in a data folder. Code outside `store/` imports only this file of it, so
 * another storage changes only this folder.
 */
import type { Database } from "bun:sqlite";
import { existsSync, statSync } from "node:fs";
import { join, resolve } from "node:path";
import type { Logger } from "pino";
import type { Awaitable } from "../domain/storage/awaitable.ts";
import type { DatabaseFiles, Sample } from "../domain/storage/files.ts";
import type {
  ConsoleStorage,
  ServerStorage,
  ServerStorageEvents,
  Storage,
} from "../domain/storage/storage.ts";
import { openActivity, stillInUseIn } from "./sqlite/side/activity.ts";
import { copyDatabase, findOwnBackup, isCopy, refuseOtherBackups } from "./sqlite/copies/copy.ts";
import { copyInProcess, findOwnInProcess } from "./sqlite/copies/copying.ts";
import { explainCommandFailure, explainTransient, isTransient } from "./sqlite/files/failures.ts";
import { DATABASE_NAME, requireDatabase } from "./sqlite/files/folder.ts";
import { openDatabase, readDatabase } from "./sqlite/files/open.ts";
import { records } from "./records/records.ts";
import { openSessions } from "./sqlite/side/sessions.ts";
import { openForReading } from "./sqlite/read/read.ts";
import { restore } from "./sqlite/copies/restore.ts";
import { sampleDatabase } from "./sqlite/read/sample.ts";
import { signals } from "./records/signals/signals.ts";
import { sqliteSql } from "./sqlite/sql.ts";
import { SqliteStore } from "./sqlite/store.ts";
import { describeProblem, verifyDatabase } from "./sqlite/copies/verify.ts";

export { problemOfFolder, refuseForeignFolder, requireDatabase } from "./sqlite/files/folder.ts";
export { isFolderLocked } from "./sqlite/files/lock.ts";
export { findMisfits } from "./sqlite/files/permissions.ts";

export const databaseFiles: DatabaseFiles = {
  pathIn: (dataDir) => join(dataDir, DATABASE_NAME),
  logBytes: (dataDir) =>
    statSync(join(dataDir, `${DATABASE_NAME}-wal`), { throwIfNoEntry: false })?.size ?? 0,
  verify: verifyDatabase,
  problemOf: describeProblem,
  sample: (file, milliseconds) =>
    sampleDatabase(file, milliseconds, async (sample) => {
      using db = openForReading(file);
      return sample(db);
    }),
  refuseOthers: refuseOtherBackups,
  findOwn: findOwnBackup,
  findOwnInProcess,
  copy: copyDatabase,
  copyInProcess,
  isCopy,
  restore,
};

export function hasDatabase(dataDir: string): boolean {
  return existsSync(databaseFiles.pathIn(dataDir));
}

/** For `serve --check`. Throws what {@link openServerStorage} would, and creates and changes nothing. */
export async function checkServerStorage(dataDir: string): Promise<void> {
  await readDatabase(dataDir, () => {});
}

/** For checks. Creates and changes nothing. Returns null without a database. Throws `UserError`. */
export function inspectStorage<T>(
  dataDir: string,
  work: (storage: Pick<Storage, "registry" | "signals" | "activity">) => Awaitable<T>,
): Promise<T | null> {
  const folder = resolve(dataDir);
  return readDatabase(folder, (db) => work({ ...open(db), activity: stillInUseIn(folder) }));
}

/** Like {@link DatabaseFiles.sample}, of the database in a folder, which a server may use. */
export function sampleStorage(dataDir: string, milliseconds: number): Promise<Sample> {
  const path = databaseFiles.pathIn(dataDir);
  return sampleDatabase(path, milliseconds, (sample) => readDatabase(dataDir, sample));
}

/** For `serve`. Throws `UserError` if another server has the folder, or it cannot be used. */
export function openServerStorage(
  where: { readonly dataDir: string; readonly externalCheckpoints: boolean },
  events: ServerStorageEvents,
): Promise<ServerStorage> {
  return SqliteStore.open(where, events);
}

/** For the console's thread; the server has opened the folder before. Throws `UserError`. */
export async function openConsoleStorage(
  dataDir: string,
  { log, now }: { readonly log: Logger; readonly now: () => number },
): Promise<ConsoleStorage> {
  const onTightened = (sentence: string): void => log.warn(sentence);
  await using opened = new AsyncDisposableStack();
  const openOne = (): Database =>
    opened.adopt(openDatabase(dataDir, "console", { onTightened }), (one) => one.close());
  const reader = openOne();
  const activity = opened.adopt(openActivity(dataDir, onTightened), (one) => one.close());
  await activity.keepKeysOf(reader);
  const { sessions, deviceSecret } = opened.use(await openSessions(dataDir, onTightened));
  const writer = openOne();
  const toClose = opened.move();
  return {
    ...records(sqliteSql({ reader, writer, now })),
    signals: signals(sqliteSql({ reader })),
    activity,
    sessions,
    deviceSecret,
    whyNotSaved: (error) => (isTransient(error) ? explainTransient(error) : null),
    close: () => toClose.disposeAsync(),
  };
}

/** Opens the storage for one command and closes it after. Throws `UserError` if it cannot be used. */
export async function withStorage<T>(
  dataDir: string,
  work: (storage: Storage) => Awaitable<T>,
  /** Creates a database if there is none. */
  { create = false }: { create?: boolean } = {},
): Promise<T> {
  const folder = resolve(dataDir);
  if (!create) requireDatabase(folder);
  const db = openDatabase(folder, "command");
  const storage: Storage = { ...open(db), activity: stillInUseIn(folder) };
  try {
    return await work(storage);
  } catch (error) {
    throw explainCommandFailure(error, databaseFiles.pathIn(folder));
  } finally {
    await storage.close();
  }
}

function open(db: Database): Omit<Storage, "activity"> {
  return {
    ...records(sqliteSql({ reader: db })),
    signals: signals(sqliteSql({ reader: db })),
    close: () => db.close(),
  };
}

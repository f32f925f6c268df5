/**
 * Chooses the storage: SQLite in a data folder. Code outside `store/` imports only this file of it, so
 * another storage changes only this folder.
 */
import type { Database } from "bun:sqlite";
import { existsSync, statSync } from "node:fs";
import { join, resolve } from "node:path";
import type { Logger } from "pino";
import type {
  Awaitable,
  ConsoleStorage,
  DatabaseFiles,
  ServerStorage,
  ServerStorageEvents,
  Storage,
} from "../domain/storage.ts";
import { everySignal, type StoredSignal } from "../domain/stored-signal.ts";
import { loadDeviceSecret } from "./device-secret.ts";
import { readStillInUse, SqliteActivity } from "./sqlite/activity.ts";
import { SqliteAudit } from "./sqlite/audit.ts";
import { copyDatabase, isCopy } from "./sqlite/copy.ts";
import { copyInProcess } from "./sqlite/copying.ts";
import { explainCommandFailure } from "./sqlite/failures.ts";
import { DATABASE_NAME, requireDatabase } from "./sqlite/folder.ts";
import { SqliteMembers } from "./sqlite/members.ts";
import { openDatabase, readDatabase } from "./sqlite/open.ts";
import { SqlitePasskeys } from "./sqlite/passkeys.ts";
import { SqliteSessions } from "./sqlite/sessions.ts";
import { SqliteRegistry } from "./sqlite/registry.ts";
import { restore } from "./sqlite/restore.ts";
import { SqliteSignals } from "./sqlite/signals.ts";
import { SqliteStore } from "./sqlite/store.ts";
import { describeProblem, verifyDatabase } from "./sqlite/verify.ts";

export { problemOfFolder, refuseForeignFolder, requireDatabase } from "./sqlite/folder.ts";
export { findMisfits } from "./sqlite/permissions.ts";

export const databaseFiles: DatabaseFiles = {
  pathIn: (dataDir) => join(dataDir, DATABASE_NAME),
  logBytes: (dataDir) =>
    statSync(join(dataDir, `${DATABASE_NAME}-wal`), { throwIfNoEntry: false })?.size ?? 0,
  verify: verifyDatabase,
  problemOf: describeProblem,
  copy: copyDatabase,
  copyInProcess,
  isCopy,
  restore,
};

export function hasDatabase(dataDir: string): boolean {
  return existsSync(databaseFiles.pathIn(dataDir));
}

/** For `serve --check`. Throws what {@link openServerStorage} would, and creates and changes nothing. */
export function checkServerStorage(dataDir: string): Awaitable<void> {
  readDatabase(dataDir, () => {});
}

/** For `doctor`: of all desks, the newest first. Creates and changes nothing. Throws `UserError`. */
export function newestSignals(
  dataDir: string,
  limit: number,
): Awaitable<readonly StoredSignal[] | null> {
  const query = { deskId: null, filter: everySignal, order: "newest", limit } as const;
  return readDatabase(dataDir, (db) => new SqliteSignals(db).list(query).signals);
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
  using opened = new DisposableStack();
  const db = opened.adopt(openDatabase(dataDir, "console", { onTightened }), (one) => one.close());
  const activity = opened.adopt(new SqliteActivity(dataDir, onTightened), (one) => one.close());
  activity.keepKeysOf(db);
  const sessions = opened.adopt(new SqliteSessions(dataDir, onTightened), (one) => one.close());
  const deviceSecret = loadDeviceSecret(dataDir, log);
  const toClose = opened.move();
  return { ...open(db, now), activity, sessions, deviceSecret, close: () => toClose.dispose() };
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
  const storage: Storage = { ...open(db, Date.now), activity: readStillInUse(folder) };
  try {
    return await work(storage);
  } catch (error) {
    throw explainCommandFailure(error, databaseFiles.pathIn(folder));
  } finally {
    await storage.close();
  }
}

function open(db: Database, now: () => number): Omit<Storage, "activity"> {
  return {
    registry: new SqliteRegistry(db, now),
    members: new SqliteMembers(db, now),
    passkeys: new SqlitePasskeys(db, now),
    audit: new SqliteAudit(db, now),
    signals: new SqliteSignals(db),
    close: () => db.close(),
  };
}

/** SQLite in a data folder. */
import type { Database } from "bun:sqlite";
import { statSync } from "node:fs";
import { join, resolve } from "node:path";
import type { Engine } from "../../domain/storage/engine.ts";
import type { DatabaseFiles } from "../../domain/storage/files.ts";
import type { Storage } from "../../domain/storage/storage.ts";
import { silentDesks } from "../records/desk-rows.ts";
import { records } from "../records/records.ts";
import { signals } from "../records/signals/signals.ts";
import { copyDatabase, findOwnBackup, isCopy, refuseOtherBackups } from "./copies/copy.ts";
import { copyInProcess, drillInProcess, findOwnInProcess } from "./copies/copying.ts";
import { drillBackup } from "./copies/drill.ts";
import { restore } from "./copies/restore.ts";
import { describeProblem, verifyDatabase } from "./copies/verify.ts";
import { explainCommandFailure, explainTransient, isTransient } from "./files/failures.ts";
import { DATABASE_NAME, hasDatabase, requireDatabase } from "./files/folder.ts";
import { isFolderLocked } from "./files/lock.ts";
import { openDatabase, readDatabase } from "./files/open.ts";
import { attemptsInMemory, notesInMemory } from "./memory.ts";
import { openForReading } from "./read/read.ts";
import { sampleDatabase } from "./read/sample.ts";
import { activityForCommand, openActivity } from "./side/activity.ts";
import { openSessions } from "./side/sessions.ts";
import { sqliteSql } from "./sql.ts";
import { openServerStorage } from "./store.ts";

const pathIn = (dataDir: string): string => join(dataDir, DATABASE_NAME);

const files: DatabaseFiles = {
  pathIn,
  logBytes: (dataDir) => statSync(`${pathIn(dataDir)}-wal`, { throwIfNoEntry: false })?.size ?? 0,
  verify: verifyDatabase,
  problemOf: describeProblem,
  sample: (file, milliseconds) =>
    sampleDatabase(file, milliseconds, async (sample) => {
      using db = openForReading(file);
      return sample(db);
    }),
  sampleIn: (dataDir, milliseconds) =>
    sampleDatabase(pathIn(dataDir), milliseconds, (sample) => readDatabase(dataDir, sample)),
  refuseOthers: refuseOtherBackups,
  findOwn: findOwnBackup,
  findOwnInProcess,
  copy: copyDatabase,
  copyInProcess,
  drill: drillBackup,
  drillInProcess,
  isCopy,
  restore,
};

export const sqlite = {
  files,
  hasDatabase: (dataDir) => hasDatabase(resolve(dataDir)),
  requireDatabase: (dataDir) => requireDatabase(resolve(dataDir)),
  isLocked: isFolderLocked,
  openServerStorage,

  openConsoleStorage: async (dataDir, { now, onWarning }) => {
    await using opened = new AsyncDisposableStack();
    const openOne = (): Database =>
      opened.use(openDatabase(dataDir, "console", { onTightened: onWarning }));
    const reader = openOne();
    const silent = () => silentDesks(sqliteSql({ reader }));
    const activity = opened.adopt(openActivity(dataDir, onWarning, silent), (one) => one.close());
    await activity.keepKeysOf(reader);
    const { sessions, deviceSecret } = opened.use(await openSessions(dataDir, onWarning));
    const writer = openOne();
    const toClose = opened.move();
    return {
      ...records(sqliteSql({ reader, writer, now })),
      signals: signals(sqliteSql({ reader })),
      replication: () => null,
      activity,
      sessions,
      deviceSecret,
      notes: notesInMemory(now),
      attempts: attemptsInMemory(now),
      whyNotSaved: (error) => (isTransient(error) ? explainTransient(error) : null),
      close: () => toClose.disposeAsync(),
    };
  },

  withStorage: async (dataDir, work, { create = false } = {}) => {
    const folder = resolve(dataDir);
    if (!create) requireDatabase(folder);
    using db = openDatabase(folder, "command");
    try {
      return await work(storageOf(db, folder));
    } catch (error) {
      throw explainCommandFailure(error, pathIn(folder));
    }
  },

  inspectStorage: (dataDir, work) => {
    const folder = resolve(dataDir);
    return readDatabase(folder, (db) => work(storageOf(db, folder)));
  },
} satisfies Engine;

function storageOf(db: Database, dataDir: string): Storage {
  const sql = sqliteSql({ reader: db });
  return {
    ...records(sql),
    signals: signals(sql),
    activity: activityForCommand(dataDir),
    replication: () => null,
  };
}

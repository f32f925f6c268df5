/**
 * One server a data folder. The lock is a SQLite write lock on a file of its own: the kernel lets go
 * of it when the process ends, however it ends, and others can read whose it is while it is held.
 */
import { Database, SQLiteError } from "bun:sqlite";
import { join } from "node:path";
import { UserError } from "../../domain/errors.ts";
import { prepareFolder } from "./folder.ts";

export interface FolderLock {
  release(): void;
}

/** Throws {@link UserError} naming the process that has the folder. */
export function lockFolder(dataDir: string): FolderLock {
  prepareFolder(dataDir);
  const path = join(dataDir, "serve.lock");
  const db = new Database(path, { create: true, readwrite: true, strict: true });
  try {
    db.run(
      "CREATE TABLE IF NOT EXISTS holder (id INTEGER PRIMARY KEY, pid INTEGER NOT NULL) STRICT",
    );
    db.run("INSERT OR REPLACE INTO holder (id, pid) VALUES (1, ?)", [process.pid]);
    db.run("BEGIN IMMEDIATE");
  } catch (error) {
    if (!(error instanceof SQLiteError) || !error.code?.startsWith("SQLITE_BUSY")) throw error;
    const holder = db.query<{ pid: number }, []>("SELECT pid FROM holder").get();
    db.close();
    throw new UserError(
      `Process ${holder?.pid ?? "unknown"} serves ${dataDir} already: stop it first, or name another folder with --data DIR.`,
    );
  }
  return {
    release: () => {
      db.run("ROLLBACK");
      db.close();
    },
  };
}

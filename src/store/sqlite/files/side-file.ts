/**
 * A database file beside the signals, so that the two never wait for each other's lock. What it holds is
 * not worth a repair: a file that cannot be read is replaced by an empty one.
 */
import { Database, SQLiteError } from "bun:sqlite";
import { closeSync, openSync, rmSync } from "node:fs";
import type { Sql } from "../../records/sql.ts";
import { change, reading } from "../sql.ts";
import { describeFailure, isUnreadable } from "./failures.ts";
import { readVersion } from "./migrate.ts";
import { guard, inTransaction } from "./transaction.ts";

/** Only this process writes to the file, but a person may read it, and be the last to close it. */
export const BUSY_TIMEOUT_MS = 1_000;

interface SideFileOptions {
  readonly path: string;
  /** What it holds, for warnings, such as "the activity of the desks". */
  readonly content: string;
  /** Creates the tables. */
  readonly sql: string;
  /** A file of another version is replaced by an empty one. */
  readonly version: number;
  /** NORMAL: commits do not wait for the disk, and a power loss may lose the newest. */
  readonly synchronous?: "NORMAL" | "FULL";
  /** Runs on each connection. */
  readonly onOpened?: (db: Database) => void;
  /** Gets a sentence about what cannot be read or kept. */
  readonly onWarning: (sentence: string) => void;
}

export class SideFile {
  readonly #options: SideFileOptions;
  #db: Database;
  /** What is done now. */
  #last: Promise<unknown> = Promise.resolve();

  /** Never throws: a server starts without it. The folder must exist. */
  constructor(options: SideFileOptions) {
    this.#options = options;
    this.#db = this.#open();
  }

  get path(): string {
    return this.#options.path;
  }

  close(): void {
    this.#db.close();
  }

  /** One after the other: a reader would see what a transaction has not committed. `work` runs a second time if the file had to be replaced. */
  use<T>(work: (db: Database) => Promise<T>): Promise<T> {
    const result = this.#last.then(async () => {
      try {
        return await work(this.#db);
      } catch (error) {
        this.#replaceAfter(error);
        return work(this.#db);
      }
    });
    this.#last = result.catch(() => {});
    return result;
  }

  /** What the records ask. */
  port(): Sql {
    return {
      get now() {
        return Date.now();
      },
      all: (sql, ...values) => this.use((db) => reading(db).all(sql, ...values)),
      get: (sql, ...values) => this.use((db) => reading(db).get(sql, ...values)),
      transaction: (work) => this.use((db) => change(db, Date.now, work)),
    };
  }

  /** Throws the error if the file is not at fault. */
  #replaceAfter(error: unknown): void {
    if (!isUnreadable(error) && !hasOtherTables(error)) throw error;
    this.#db.close();
    this.#db = this.#replace(describeFailure(error));
  }

  #open(): Database {
    try {
      return this.#openFile();
    } catch (error) {
      if (error instanceof OtherVersion || isUnreadable(error)) {
        return this.#replace(describeFailure(error));
      }
      return this.#openInMemory(error);
    }
  }

  #replace(reason: string): Database {
    const { path, content, onWarning } = this.#options;
    onWarning(`${path} was replaced by an empty file (${reason}): it held ${content}`);
    try {
      for (const end of ["", "-wal", "-shm"]) rmSync(path + end, { force: true });
      return this.#openFile();
    } catch (error) {
      return this.#openInMemory(error);
    }
  }

  #openInMemory(error: unknown): Database {
    const { path, content, onWarning } = this.#options;
    onWarning(
      `${path} cannot be used (${describeFailure(error)}): this server keeps ${content} in memory only, until its next start`,
    );
    return this.#prepare(new Database(":memory:", { strict: true }));
  }

  #openFile(): Database {
    const { path } = this.#options;
    closeSync(openSync(path, "a", 0o600));
    return this.#prepare(new Database(path, { create: false, readwrite: true, strict: true }));
  }

  #prepare(db: Database): Database {
    const { sql, version, synchronous = "NORMAL", onOpened } = this.#options;
    try {
      guard(db, BUSY_TIMEOUT_MS);
      db.run("PRAGMA journal_mode = WAL");
      db.run(`PRAGMA synchronous = ${synchronous}`);
      const found = readVersion(db);
      if (found === 0) {
        inTransaction(db, () => db.run(`${sql}; PRAGMA user_version = ${version}`));
      } else if (found !== version) {
        throw new OtherVersion(`it has version ${found}`);
      }
      onOpened?.(db);
      return db;
    } catch (error) {
      db.close();
      throw error;
    }
  }
}

/** SQLite has no code for it. */
function hasOtherTables(error: unknown): boolean {
  return (
    error instanceof SQLiteError && /^no such (table|column)|has no column/.test(error.message)
  );
}

class OtherVersion extends Error {}

/** The database as a file: copies, verification, restores. */
import type { Awaitable } from "./awaitable.ts";

/**
 * What `backup`, `restore` and `verify` need: a capability of storages whose database is a file in the
 * data folder. Each method throws `UserError`; `verify` reports damage in its result.
 */
export interface DatabaseFiles {
  pathIn(dataDir: string): string;
  /** The size of the log, which is part of the database until a checkpoint has copied it; 0 without one. */
  logBytes(dataDir: string): number;
  verify(file: string): Awaitable<Verification>;
  /** In a sentence; null if all checks are ok. */
  problemOf(verification: Verification): string | null;
  /** Looks for damage in a part of a file that can be read in this time. Throws `UserError` if it cannot be used. */
  sample(file: string, milliseconds: number): Awaitable<Sample>;
  /** {@link sample} of the database in a folder, which a server may use. */
  sampleIn(dataDir: string, milliseconds: number): Promise<Sample>;
  /** Throws `UserError` if the `earlier` backups, newest first, are of another database. */
  refuseOthers(file: string, earlier: readonly string[]): void;
  /** Returns the first of the backups that is not known to be of another database, or null. */
  findOwn(file: string, backups: readonly string[]): string | null;
  /** {@link findOwn} in a process of its own, for a caller that no disk may block. */
  findOwnInProcess(
    file: string,
    backups: readonly string[],
    options: Pick<CopyOptions, "program" | "signal">,
  ): Promise<string | null>;
  /**
   * Copies a database, which may be in use, and verifies the copy before it gets its name. Throws
   * `UserError` if the `earlier` backups, newest first, are of another database.
   */
  copy(
    from: string,
    to: string,
    earlier?: readonly string[],
    /** A new one, where the copy is until it is complete. */
    folder?: string,
  ): Awaitable<Verification>;
  /** {@link copy} in a process of its own, which can be watched and stopped. */
  copyInProcess(from: string, to: string, options: CopyOptions): Promise<Verification>;
  /**
   * Restores a backup into a new `folder`, which is removed again, verifies it, and compares it with the database in
   * `dataDir`, which may be in use. Throws `UserError` if it does not pass.
   */
  drill(file: string, dataDir: string, folder: string): Promise<Drilled>;
  /** {@link drill} in a process of its own, with a new folder in `around`. */
  drillInProcess(
    file: string,
    dataDir: string,
    around: string,
    options: CopyOptions,
  ): Promise<Drilled>;
  /** Whether the file is a copy that may be replaced by another. */
  isCopy(file: string): boolean;
  /**
   * Puts a copy of a backup in the place of the folder's database, which is kept under a name with
   * this stamp, and only replaced if `isForced`. The server must be stopped.
   */
  restore(
    file: string,
    dataDir: string,
    options: CopyOptions & { readonly isForced: boolean; readonly stamp: string },
  ): Promise<Restored>;
}

/** What was found in a part of a database. */
export interface Sample {
  /** How much of the signals was read, from 0 to 1; null if the database has no tables yet. */
  readonly share: number | null;
  /** In a sentence; null if all that was read is sound. */
  readonly damage: string | null;
}

/** What was found in a database file. */
export interface Verification {
  readonly ok: boolean;
  readonly file: string;
  /** Schema version of the database. */
  readonly version: number;
  readonly signals: number;
  /** The newest signal's id, or null without signals. */
  readonly newest_id: string | null;
  /** By name. If `schema` fails, nothing else was read. */
  readonly checks: Readonly<Record<string, Check>> & { readonly schema: Check };
}

export interface Check {
  /** Null: not checked, because of what another check found. */
  readonly ok: boolean | null;
  readonly detail: string;
}

export interface CopyOptions {
  /** The command line that starts this program, without the command. */
  readonly program: readonly string[];
  /** Free space that signals need: a copy on the disk of the original stops before it takes that. */
  readonly freeBytesMin: number;
  /** As for {@link DatabaseFiles.copy}. */
  readonly earlier?: readonly string[] | undefined;
  /** Stops the copy. */
  readonly signal?: AbortSignal | undefined;
  readonly onProgress?: ((progress: CopyProgress) => void) | undefined;
}

/** Bytes written so far, and about how many it will be; the verification follows. */
export interface CopyProgress {
  readonly copiedBytes: number;
  readonly totalBytes: number;
}

export interface Drilled {
  /** How many the backup has, each of them as in the database. */
  readonly signals: number;
  readonly newest_id: string | null;
  /** Stored after the backup. */
  readonly newer_signals: number;
}

export interface Restored {
  /** The path of the previous database, or null. */
  readonly kept: string | null;
  /** What was carried over from the previous database, or null without one. */
  readonly keys: KeysTaken | null;
  /** Signals that only the previous database has; null without one, or if they cannot be counted. */
  readonly missing_signals: number | null;
  /** Names of the desks that are archived now. */
  readonly archived_desks: readonly string[];
}

/** `failure`: why nothing was carried over. */
export type KeysTaken =
  | {
      readonly minted: number;
      readonly revoked: number;
      readonly only_in_backup: number;
      readonly failure: null;
    }
  | { readonly failure: string };

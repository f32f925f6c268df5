/** Classifies SQLite's failures, and explains them. */
import { SQLiteError } from "bun:sqlite";
import { basename, dirname } from "node:path";
import { messageOf, systemCode, UserError } from "../../../lib/errors.ts";
import { shellQuoted } from "../../../lib/text/shell.ts";
import { DATABASE_NAME, problemOfFolder } from "./folder.ts";
import { problemOfModes } from "./permissions.ts";

/** Another connection holds the lock that this one asked for. */
export function isBusy(error: unknown): boolean {
  return hasCode(error, /^SQLITE_BUSY/);
}

/**
 * The disk is full, a quota is used up (`IOERR_WRITE`), or the log's index has no room (`IOERR_SHMSIZE`).
 * Nothing is half stored: a transaction without its commit frame is ignored and overwritten.
 */
export function isRefusedWrite(error: unknown): boolean {
  return hasCode(error, /^SQLITE_(FULL|IOERR_WRITE|IOERR_SHMSIZE)/);
}

/** A full disk or another process's lock: it is safe to try again later. */
export function isTransient(error: unknown): boolean {
  return isRefusedWrite(error) || hasCode(error, /^SQLITE_(BUSY|LOCKED)/);
}

/** Explains a transient failure to people. {@link describeFailure} has SQLite's words. */
export function explainTransient(error: unknown): string {
  if (!isRefusedWrite(error)) return "another process has locked the database";
  return hasCode(error, /^SQLITE_IOERR_WRITE/)
    ? "the disk refuses writes, perhaps because a quota is used up"
    : "the disk is full";
}

/** The disk does not return what was written: end the server, or it serves damaged data. */
export function isDamage(error: unknown): boolean {
  return hasCode(error, /^SQLITE_(CORRUPT|NOTADB|IOERR)/);
}

/** The file is damaged, or not SQLite's. */
export function isUnreadable(error: unknown): boolean {
  if (!(error instanceof SQLiteError)) return false;
  // SQLite has no code for an unknown format number in the header.
  return hasCode(error, /^SQLITE_(CORRUPT|NOTADB)/) || error.message === "unsupported file format";
}

/** A row was refused (a constraint, a size, a type), or our own code failed on it. */
export function isAboutOneRow(error: unknown): boolean {
  return (
    !(error instanceof SQLiteError) || hasCode(error, /^SQLITE_(CONSTRAINT|TOOBIG|MISMATCH|RANGE)/)
  );
}

/** For the operator's log: SQLite's messages name tables and columns, never values. */
export function describeFailure(error: unknown): string {
  if (error instanceof SQLiteError) return `${error.code ?? "SQLITE_ERROR"}: ${error.message}`;
  return messageOf(error);
}

export function notOurs(path: string): UserError {
  const folder = dirname(path);
  // A database of ours may have lost its first page.
  const more =
    basename(path) === DATABASE_NAME
      ? ` If this is the right folder, the file is damaged: restore a backup (the current file is kept): signalbox restore FILE --data ${shellQuoted(folder)} --force`
      : "";
  return new UserError(
    `${path} is not a Signalbox database, and was left as it is: name another file, or another folder with --data DIR.${more}`,
  );
}

/** Explains in one sentence why the database cannot be used. A `UserError` explains itself. */
export function explainFailure(error: unknown, path: string): unknown {
  if (error instanceof UserError) return error;
  const isOfSqlite = error instanceof SQLiteError;
  const folder = isOfSqlite ? null : problemOfFolder(dirname(path));
  if (folder !== null) return folder;
  if (hasCode(error, /^SQLITE_NOTADB$/)) return notOurs(path);
  if (isUnreadable(error)) return new DamageError(path, messageOf(error));
  if (isBusy(error)) {
    return new UserError(
      `${path} is locked by another process: wait for it or end it, then try again.`,
    );
  }
  if (isRefusedWrite(error)) {
    return new UserError(
      `The disk of ${path} is full, or a quota is used up (${systemCode(error)}): free some space, then try again.`,
    );
  }
  const closed = problemOfModes([path], 0o400);
  if (closed !== null) return closed;
  return new UserError(
    `${path} cannot be used (${isOfSqlite ? describeFailure(error) : systemCode(error)}): run signalbox as the user who owns it, or name another folder with --data DIR.`,
  );
}

/** Like {@link explainFailure}, but returns an error about one row unchanged. */
export function explainCommandFailure(error: unknown, path: string): unknown {
  return isAboutOneRow(error) ? error : explainFailure(error, path);
}

/** The advice is for a database in use; commands for backups replace it. */
export class DamageError extends UserError {
  readonly problem: string;

  constructor(path: string, said: string) {
    // SQLite may quote the schema, which has many lines.
    const problem = said.replaceAll(/\s+/g, " ");
    super(
      `${path} is damaged (${problem}): stop all signalbox processes that use it, then restore a backup (the current database is kept): signalbox restore FILE --data ${shellQuoted(dirname(path))} --force`,
    );
    this.problem = problem;
  }
}

function hasCode(error: unknown, pattern: RegExp): boolean {
  return error instanceof SQLiteError && pattern.test(error.code ?? "");
}

/** What SQLite's failures mean for us. */
import { SQLiteError } from "bun:sqlite";
import { dirname } from "node:path";
import { messageOf, systemCode, UserError } from "../../domain/errors.ts";
import { shellQuoted } from "../../domain/shell.ts";
import { problemOfFolder } from "./folder.ts";

/** Another connection holds the lock that this one asked for. */
export function isBusy(error: unknown): boolean {
  return hasCode(error, /^SQLITE_BUSY/);
}

/**
 * The disk has no room for what is to be written: none at all, none within a quota (SQLite calls that
 * `IOERR_WRITE`), or none for the log's index (`IOERR_SHMSIZE`). Nothing was half stored: without its
 * commit frame a transaction in the log counts for nothing, and the next one overwrites it.
 */
export function isRefusedWrite(error: unknown): boolean {
  return hasCode(error, /^SQLITE_(FULL|IOERR_WRITE|IOERR_SHMSIZE)/);
}

/** The disk or another process stands in the way for now; to try again later is safe. */
export function isTransient(error: unknown): boolean {
  return isRefusedWrite(error) || hasCode(error, /^SQLITE_(BUSY|LOCKED)/);
}

/** What is in the way of a transient failure. */
export function obstacleOf(error: unknown): "disk" | "lock" {
  return isRefusedWrite(error) ? "disk" : "lock";
}

/** The disk does not give back what was written: to go on would be to serve damage. */
export function isDamage(error: unknown): boolean {
  return hasCode(error, /^SQLITE_(CORRUPT|NOTADB|IOERR)/);
}

/** The file is not what SQLite or we wrote, or not SQLite's at all. */
export function isUnreadable(error: unknown): boolean {
  if (!(error instanceof SQLiteError)) return false;
  // The number of a format in its header: SQLite has no code for one that it does not know.
  return hasCode(error, /^SQLITE_(CORRUPT|NOTADB)/) || error.message === "unsupported file format";
}

/** A row was refused (a constraint, a size, a type), or our own code failed on it. */
export function isAboutOneRow(error: unknown): boolean {
  return (
    !(error instanceof SQLiteError) || hasCode(error, /^SQLITE_(CONSTRAINT|TOOBIG|MISMATCH|RANGE)/)
  );
}

/** For the log of the operator; SQLite's messages name tables and columns, never values. */
export function describeFailure(error: unknown): string {
  if (error instanceof SQLiteError) return `${error.code ?? "SQLITE_ERROR"}: ${error.message}`;
  return messageOf(error);
}

export function notOurs(path: string): UserError {
  return new UserError(
    `${path} is not a Signalbox database, and was left as it is: name another file, or another folder with --data DIR.`,
  );
}

/** One sentence about why the database did not open. Errors that are not about the file pass through. */
export function explainFailure(error: unknown, path: string): unknown {
  if (!(error instanceof SQLiteError)) {
    return (
      problemOfFolder(dirname(path)) ??
      new UserError(
        `${path} cannot be used (${systemCode(error)}): run signalbox as the user who owns it, or name another folder with --data DIR.`,
      )
    );
  }
  const code = error.code ?? "";
  if (code === "SQLITE_NOTADB") return notOurs(path);
  if (isUnreadable(error)) {
    return new DamageError(path, error.message);
  }
  if (isBusy(error)) {
    return new UserError(
      `${path} is locked by another process: wait for it or end it, then try again.`,
    );
  }
  if (isRefusedWrite(error)) {
    return new UserError(
      `The disk of ${path} is full, or a quota is used up (${code}): free some space, then try again.`,
    );
  }
  return new UserError(
    `${path} cannot be used (${code}: ${error.message}): run signalbox as the user who owns it, or name another folder with --data DIR.`,
  );
}

/** As {@link explainFailure}; a defect of ours with some row passes through. */
export function explainCommandFailure(error: unknown, path: string): unknown {
  return isAboutOneRow(error) ? error : explainFailure(error, path);
}

/** What to do about it is for who has the file in use; who only looks at it may say something else. */
export class DamageError extends UserError {
  readonly problem: string;

  constructor(path: string, said: string) {
    // SQLite may quote the schema, which has many lines.
    const problem = said.replaceAll(/\s+/g, " ");
    super(
      `${path} is damaged (${problem}): stop every signalbox on it, and restore a backup, which keeps the present database: signalbox restore FILE --data ${shellQuoted(dirname(path))} --force`,
    );
    this.problem = problem;
  }
}

function hasCode(error: unknown, pattern: RegExp): boolean {
  return error instanceof SQLiteError && pattern.test(error.code ?? "");
}

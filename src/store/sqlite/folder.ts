/** The data folder and the modes of what is in it. */
import { chmodSync, mkdirSync, readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { UserError, systemCode } from "../../domain/errors.ts";
import { shellQuoted } from "../../domain/shell.ts";
import { writeToStderr } from "../../output.ts";

export const DATABASE_NAME = "signalbox.db";

/** Where a restore prepares the database that will take the place of this one. */
export function restoringPath(path: string): string {
  return `${path}.restoring`;
}

/** Hears, in a sentence, of a mode that let others in and was closed. */
export type OnTightened = (sentence: string) => void;

/** For callers without a log. */
export const sayOnStderr: OnTightened = (sentence) => writeToStderr(`${sentence}\n`);

/**
 * The folder is 0700, and belongs to the user that we run as. One that existed before is only tightened
 * if it is plainly ours (empty, or with our database in it): nobody's home folder changes because of a
 * stray `--data .`.
 */
export function prepareFolder(dataDir: string, onTightened: OnTightened): void {
  try {
    mkdirSync(dataDir, { recursive: true, mode: 0o700 });
    refuseForeignFolder(dataDir);
    const entries = readdirSync(dataDir);
    const isOurs = entries.length === 0 || entries.includes(DATABASE_NAME);
    if (isOurs) tighten(dataDir, 0o700, onTightened);
  } catch (error) {
    throw unusable(dataDir, error);
  }
}

/** Throws {@link UserError} if the folder has no database. Creates and changes nothing. */
export function requireDatabase(dataDir: string): void {
  if (hasDatabase(dataDir)) return;
  throw new UserError(
    `There is no database in ${dataDir}: name its folder with --data DIR, or begin a new one`,
    "desk create NAME",
  );
}

function hasDatabase(dataDir: string): boolean {
  try {
    if (statSync(dataDir, { throwIfNoEntry: false }) === undefined) return false;
    refuseForeignFolder(dataDir);
    const path = join(dataDir, DATABASE_NAME);
    // What a database leaves behind is for `openDatabase` to explain.
    return [path, `${path}-wal`, restoringPath(path)].some(
      (file) => statSync(file, { throwIfNoEntry: false }) !== undefined,
    );
  } catch (error) {
    throw unusable(dataDir, error);
  }
}

function unusable(dataDir: string, error: unknown): UserError {
  if (error instanceof UserError) return error;
  return new UserError(
    `The data folder ${dataDir} cannot be used (${systemCode(error)}): name a folder that this user may write to, with --data DIR.`,
  );
}

/**
 * Root is refused like any other user: files that it creates would be root's, and the server that has
 * the folder could not open them. The owner could also have planted links there for root to follow.
 */
function refuseForeignFolder(dataDir: string): void {
  const ours = process.geteuid?.();
  const owner = statSync(dataDir).uid;
  if (ours === undefined || owner === ours) return;
  const ownerName = userName(owner);
  const sudoName = shellQuoted(ownerName ?? `#${owner}`);
  const chownName = shellQuoted(userName(ours) ?? String(ours));
  throw new UserError(
    `The data folder ${dataDir} belongs to ${ownerName ?? `user ${owner}`}, and you are ${userName(ours) ?? `user ${ours}`}: put sudo -u ${sudoName} before the command, or if the folder should be yours, take it over with: sudo chown -R ${chownName} ${shellQuoted(dataDir)}`,
  );
}

/** Null for a user that /etc/passwd does not list. */
function userName(uid: number): string | null {
  try {
    const lines = readFileSync("/etc/passwd", "utf8").split("\n");
    return (
      lines.map((line) => line.split(":")).find((fields) => fields[2] === String(uid))?.[0] ?? null
    );
  } catch {
    return null;
  }
}

/** Takes every right of group and others away where there is one. */
export function tighten(path: string, mode: number, onTightened: OnTightened): void {
  const before = statSync(path).mode & 0o7777;
  if ((before & 0o077) === 0) return;
  chmodSync(path, mode);
  onTightened(`${path} was open to other users (mode ${octal(before)}); it is ${octal(mode)} now`);
}

function octal(mode: number): string {
  return mode.toString(8).padStart(4, "0");
}

/** Who owns the files in the data folder, and who may access them. */
import { chmodSync, lstatSync, readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { systemCode, UserError } from "../../../lib/errors.ts";
import { shellQuoted } from "../../../lib/text/shell.ts";
import { writeToStderr } from "../../../lib/output.ts";
import { userName } from "../../os-user.ts";

/** Gets a sentence about permissions that were tightened. */
export type OnTightened = (sentence: string) => void;

/** For callers without a log. */
export const sayOnStderr: OnTightened = (sentence) => writeToStderr(`${sentence}\n`);

/** The files of Signalbox in a data folder. */
export const OUR_FILES =
  /^(signalbox\.db|signalbox-(activity|sessions)\.db|serve\.lock|ops\.sock|notify\.key$|acme$)/;
/** Those that a server opens, without copies that somebody made beside them. */
const OPENED_FILES =
  /^(signalbox(-activity|-sessions)?\.db(-wal|-shm)?|serve\.lock|ops\.sock|notify\.key)$/;
/** Has the keys of `serve --acme-domain`. */
const ACME_FOLDER = "acme";

/** Their owner could read and change what is stored. */
export function refuseForeignFiles(dataDir: string): void {
  const ours = process.geteuid?.();
  if (ours === undefined) return;
  const foreign = readdirSync(dataDir)
    .filter((name) => OPENED_FILES.test(name))
    .map((name) => join(dataDir, name))
    .map((path) => ({ path, owner: statSync(path, { throwIfNoEntry: false })?.uid ?? ours }))
    .filter(({ owner }) => owner !== ours);
  const [first] = foreign;
  if (first === undefined) return;
  const files = foreign.map(({ path }) => shellQuoted(path)).join(" ");
  // `-h`: the file may be a link to one that belongs to root.
  throw new UserError(
    `${first.path} belongs to ${nameOf(first.owner)}, and you are ${nameOf(ours)}. Run: sudo chown -h ${ours} ${files}, or name another folder with --data DIR.`,
  );
}

/** Explains files of this user that lack permissions for their owner. SQLite opens such a file read-only. */
export function problemOfModes(paths: readonly string[], needed = 0o600): UserError | null {
  const closed = paths.flatMap((path) => {
    const stats = statSync(path, { throwIfNoEntry: false });
    if (stats === undefined || stats.uid !== process.geteuid?.()) return [];
    return (stats.mode & needed) === needed ? [] : [{ path, mode: stats.mode }];
  });
  const [first] = closed;
  if (first === undefined) return null;
  const files = closed.map(({ path }) => shellQuoted(path)).join(" ");
  return new UserError(
    `${first.path} cannot be used: its mode is ${octal(first.mode & 0o7777)}. Run: chmod 600 ${files}, or name another folder with --data DIR.`,
  );
}

export function nameOf(uid: number): string {
  return userName(uid) ?? `user ${uid}`;
}

interface WrongPermissions {
  /** Files of other users. */
  readonly foreign: string[];
  /** Modes other than 0700 for folders and 0600 for files, in octal digits. */
  readonly wrongMode: { readonly path: string; readonly mode: string }[];
}

/** Looks at the folder, our files in it, and those in its `acme/`. */
export function findWrongPermissions(dataDir: string): WrongPermissions {
  const found: WrongPermissions = { foreign: [], wrongMode: [] };
  for (const path of ourPaths(dataDir)) {
    const stats = statSync(path, { throwIfNoEntry: false });
    // SQLite may have removed its log meanwhile.
    if (stats === undefined) continue;
    if (stats.uid !== process.geteuid?.()) found.foreign.push(path);
    const { mode } = stats;
    if ((mode & 0o777) !== (stats.isDirectory() ? 0o700 : 0o600)) {
      found.wrongMode.push({ path, mode: octal(mode & 0o7777) });
    }
  }
  return found;
}

/** The folder, our files in it, and those in its `acme/`. */
export function ourPaths(dataDir: string): string[] {
  const ours = readdirSync(dataDir).filter((name) => OUR_FILES.test(name) && name !== ACME_FOLDER);
  return [
    dataDir,
    ...ours.map((name) => join(dataDir, name)),
    ...acmePaths(join(dataDir, ACME_FOLDER)),
  ];
}

/** Nothing that is reached through a link. */
function acmePaths(folder: string): string[] {
  if (lstatSync(folder, { throwIfNoEntry: false })?.isDirectory() !== true) return [];
  const files = readdirSync(folder, { withFileTypes: true }).filter((file) => file.isFile());
  return [folder, ...files.map(({ name }) => join(folder, name))];
}

/** Removes the permissions of group and others. Leaves files of other users as they are. */
export function tighten(path: string, onTightened: OnTightened): void {
  const stats = statSync(path, { throwIfNoEntry: false });
  if (stats === undefined || stats.uid !== process.geteuid?.()) return;
  const before = stats.mode & 0o7777;
  if ((before & 0o077) === 0) return;
  const after = before & 0o700;
  try {
    chmodSync(path, after);
  } catch (error) {
    // Another process may remove the log at any moment, when it closes the database last.
    if (systemCode(error) === "ENOENT") return;
    throw error;
  }
  onTightened(`${path} was open to other users (mode ${octal(before)}); it is ${octal(after)} now`);
}

export function octal(mode: number): string {
  return mode.toString(8).padStart(4, "0");
}

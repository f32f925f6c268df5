/** The data folder and its permissions. */
import { OUR_FILES } from "./permissions.ts";
import {
  nameOf,
  octal,
  type OnTightened,
  ourPaths,
  problemOfModes,
  refuseForeignFiles,
  tighten,
} from "./permissions.ts";
import {
  accessSync,
  constants,
  existsSync,
  mkdirSync,
  readdirSync,
  statSync,
  type Stats,
} from "node:fs";
import { dirname, join } from "node:path";
import { UserError, systemCode } from "../../../lib/errors.ts";
import { shellQuoted } from "../../../lib/text/shell.ts";
import { userName } from "../../os-user.ts";

export const DATABASE_NAME = "signalbox.db";

/** Where a restore prepares the new database. */
export function restoringPath(path: string): string {
  return `${path}.restoring`;
}

/** Where `signalbox copy` makes a database. */
export function copyingPath(path: string): string {
  return `${path}.copying`;
}

/** The data folder of the package, and of the unit in `deploy/`. */
const SERVICE_DATA = "/var/lib/signalbox";

/**
 * Creates the folder, or checks that it is empty or has our files, and removes the permissions of other
 * users. Refuses any other folder, and leaves it as it is. The database's own files are left to
 * `openDatabase`, which first checks that they are ours.
 */
export function prepareFolder(dataDir: string, onTightened: OnTightened): void {
  try {
    mkdirSync(dataDir, { recursive: true, mode: 0o700 });
    refuseUnusable(dataDir);
    for (const path of ourPaths(dataDir)) {
      if (!path.startsWith(join(dataDir, DATABASE_NAME))) tighten(path, onTightened);
    }
  } catch (error) {
    throw unusable(dataDir, error);
  }
}

/** Throws what {@link prepareFolder} would. Creates and changes nothing. */
export function checkFolder(dataDir: string): void {
  try {
    const found = nearest(dataDir);
    if (found?.path === dataDir && found.stats.isDirectory()) refuseUnusable(dataDir);
    else if (found !== null) {
      const problem = problemOfFolder(dataDir);
      if (problem !== null) throw problem;
      accessSync(found.path, constants.W_OK | constants.X_OK);
    }
  } catch (error) {
    throw unusable(dataDir, error);
  }
}

function refuseUnusable(dataDir: string): void {
  refuseForeignFolder(dataDir);
  refuseOtherFiles(dataDir);
  accessSync(dataDir, constants.R_OK | constants.W_OK | constants.X_OK);
  refuseForeignFiles(dataDir);
  const path = join(dataDir, DATABASE_NAME);
  const problem = problemOfModes([path, `${path}-wal`, `${path}-shm`, join(dataDir, "serve.lock")]);
  if (problem !== null) throw problem;
}

function refuseOtherFiles(dataDir: string): void {
  // A new ext4 volume has this folder.
  const entries = readdirSync(dataDir).filter((name) => name !== "lost+found");
  if (entries.length === 0 || entries.some((name) => OUR_FILES.test(name))) return;
  throw new UserError(
    `The folder ${dataDir} has other files in it and no database: name an empty or new folder with --data DIR.`,
  );
}

/** Throws {@link UserError} if the folder has no database. Creates and changes nothing. */
export function requireDatabase(dataDir: string): void {
  if (hasDatabase(dataDir)) return;
  const services = existsSync(SERVICE_DATA) ? ` (the service's is ${SERVICE_DATA})` : "";
  throw new UserError(
    `There is no database in ${dataDir}: name its folder with --data DIR${services}, or create one`,
    "desk create NAME",
  );
}

export function hasDatabase(dataDir: string): boolean {
  try {
    if (statSync(dataDir, { throwIfNoEntry: false }) === undefined) return false;
    refuseForeignFolder(dataDir);
    const path = join(dataDir, DATABASE_NAME);
    // `openDatabase` explains leftovers of a database.
    return [path, `${path}-wal`, restoringPath(path), copyingPath(path)].some(
      (file) => statSync(file, { throwIfNoEntry: false }) !== undefined,
    );
  } catch (error) {
    throw unusable(dataDir, error);
  }
}

function unusable(dataDir: string, error: unknown): UserError {
  if (error instanceof UserError) return error;
  return (
    problemOfFolder(dataDir, 0o700) ??
    new UserError(
      `The data folder ${dataDir} cannot be used (${systemCode(error)}): name a folder that this user may write to, with --data DIR.`,
    )
  );
}

/**
 * Explains a path that is a file, or a folder of this user that lacks permissions. Null if it is neither.
 */
export function problemOfFolder(dataDir: string, needed = 0o500): UserError | null {
  const found = nearest(dataDir);
  if (found === null) return null;
  const { path, stats } = found;
  if (!stats.isDirectory()) {
    return new UserError(
      `${path} is a file, not a folder: name the folder of the database with --data DIR.`,
    );
  }
  const isOpen = (stats.mode & needed) === needed;
  if (path !== dataDir || isOpen || stats.uid !== process.geteuid?.()) return null;
  return new UserError(
    `The data folder ${path} cannot be used: its mode is ${octal(stats.mode & 0o7777)}. Run: chmod 700 ${shellQuoted(path)}, or name another folder with --data DIR.`,
  );
}

/** The path itself or, if it does not exist, the nearest folder above that does. */
function nearest(path: string): { readonly path: string; readonly stats: Stats } | null {
  try {
    const stats = statSync(path, { throwIfNoEntry: false });
    if (stats !== undefined) return { path, stats };
  } catch (error) {
    if (systemCode(error) !== "ENOTDIR") return null;
  }
  return dirname(path) === path ? null : nearest(dirname(path));
}

/**
 * Refuses root like any other user: the server could not open files that root creates, and the owner
 * could have planted links for root to follow.
 */
export function refuseForeignFolder(dataDir: string): void {
  if (!existsSync(dataDir)) return;
  const ours = process.geteuid?.();
  const owner = statSync(dataDir).uid;
  if (ours === undefined || owner === ours) return;
  const sudoName = shellQuoted(userName(owner) ?? `#${owner}`);
  throw new UserError(
    `The data folder ${dataDir} belongs to ${nameOf(owner)}, and you are ${nameOf(ours)}: put sudo -u ${sudoName} before the command, or name another folder with --data DIR.`,
  );
}

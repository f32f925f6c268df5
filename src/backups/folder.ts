/** The folder of the backups, and the names of the files in it. */
import { constants, existsSync, realpathSync } from "node:fs";
import { access, mkdir, readdir } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { systemCode, UsageError, UserError } from "../lib/errors.ts";

/** A clock that is set back by less than this is not worth a warning. */
const CLOCK_STEP_MS = 60_000;
const NAME = /^signalbox-(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z\.db$/;

/** What a folder for backups must allow. */
export const FOLDER_ACCESS = constants.R_OK | constants.W_OK | constants.X_OK;

export interface MadeBackup {
  readonly file: string;
  readonly at: number;
}

export async function createFolder(dir: string): Promise<void> {
  try {
    await mkdir(dir, { recursive: true, mode: 0o700 });
    await access(dir, FOLDER_ACCESS);
  } catch (error) {
    throw unusableFolder(dir, error);
  }
}

/** `error`: of {@link FOLDER_ACCESS}. */
export function unusableFolder(dir: string, error: unknown): UserError {
  return new UserError(
    `The folder ${dir} cannot be used for backups (${systemCode(error)}): name one that this user may write to.`,
  );
}

/** Throws `UsageError` for a folder in the data folder: losing that must not lose its backups. */
export function refuseDataFolder(dir: string, dataDir: string): void {
  const [inner, outer] = [realPath(dir), realPath(dataDir)];
  if (inner === outer) {
    throw new UsageError(`${dataDir} is the data folder: put backups into another one.`);
  }
  if (!inner.startsWith(join(outer, "/"))) return;
  throw new UsageError(`${dir} is in the data folder ${dataDir}: put backups outside of it.`);
}

/** Follows links, also if the end of the path does not exist yet. */
function realPath(path: string): string {
  if (existsSync(path) || dirname(path) === path) return realpathSync(path);
  return join(realPath(dirname(path)), basename(path));
}

/** UTC to the second, for the name of a file. */
export function timeStamp(now: number): string {
  return new Date(now).toISOString().replace(/[-:]|\.\d+/g, "");
}

/** The paths of the backups in a folder, without those of the future. */
export async function newestFirst(dir: string): Promise<string[]> {
  const { past } = await listBackups(dir);
  return past.toReversed().map((name) => join(dir, name));
}

/** When it was made is in its name. */
export function backupOf(file: string): MadeBackup {
  return { file, at: timeOf(basename(file)) };
}

function timeOf(name: string): number {
  return Date.parse(name.replace(NAME, "$1-$2-$3T$4:$5:$6Z"));
}

/**
 * Names of backups, oldest first; none if the folder does not exist yet. Those of the `future` were made while the
 * clock was wrong: they are neither counted nor deleted.
 */
export async function listBackups(
  dir: string,
): Promise<Readonly<Record<"past" | "future", string[]>>> {
  const names = await readdir(dir).catch(() => []);
  const backups = names.filter((name) => NAME.test(name)).toSorted();
  const latest = Date.now() + CLOCK_STEP_MS;
  const isPast = (name: string): boolean => timeOf(name) <= latest;
  return { past: backups.filter(isPast), future: backups.filter((name) => !isPast(name)) };
}

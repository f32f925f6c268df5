/** Copies a database, in use or not, to a file that can be trusted: consistent, on disk, and verified. */
import { closeSync, fsyncSync, openSync, readdirSync, renameSync, rmSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { UserError } from "../../domain/errors.ts";
import { explainFailure, isRefusedWrite } from "./failures.ts";
import { openForReading } from "./read.ts";
import { type Verification, verifyDatabase } from "./verify.ts";

/**
 * Of one moment: all that was committed when it began, and nothing that came after. Written beside
 * `to` with mode 0600, synced, verified, and renamed, so that `to` is the old file or the whole new
 * one, at any time. Blocks this thread for as long as it takes: see `copying.ts`. Throws `UserError`
 * where a file cannot be used, or the copy turns out to be damaged.
 */
export function copyDatabase(from: string, to: string): Verification {
  removeAbandoned(to);
  const partial = partialPath(to, process.pid);
  try {
    vacuumInto(from, partial);
    syncPath(partial);
    const verification = verifyDatabase(partial);
    if (!verification.ok) throw unsound(from, verification);
    renameSync(partial, to);
    syncPath(dirname(to));
    return { ...verification, file: to };
  } catch (error) {
    rmSync(partial, { force: true });
    throw error;
  }
}

/** Where a process writes a copy before it deserves its name. */
export function partialPath(to: string, pid: number): string {
  return join(dirname(to), `.${basename(to)}.${pid}.partial`);
}

/** Waits until a file, or the names in a folder, are on disk. */
export function syncPath(path: string): void {
  const fd = openSync(path, "r");
  try {
    fsyncSync(fd);
  } finally {
    closeSync(fd);
  }
}

function vacuumInto(from: string, partial: string): void {
  const db = openForReading(from);
  try {
    // Exclusive: nothing that is there is overwritten.
    closeSync(openSync(partial, "wx", 0o600));
    db.query("VACUUM INTO ?").run(partial);
  } catch (error) {
    throw explainFailure(error, isRefusedWrite(error) ? partial : from);
  } finally {
    db.close();
  }
}

/** What copies that were killed have left in the folder. */
function removeAbandoned(to: string): void {
  const folder = dirname(to);
  for (const name of readdirSync(folder)) {
    const pid = /^\..+\.(\d+)\.partial$/.exec(name)?.[1];
    if (pid !== undefined && !isRunning(Number(pid))) rmSync(join(folder, name), { force: true });
  }
}

function isRunning(pid: number): boolean {
  if (pid === process.pid) return false;
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return error instanceof Error && "code" in error && error.code === "EPERM";
  }
}

function unsound(from: string, { checks }: Verification): UserError {
  const [name, check] = Object.entries(checks).find(([, { ok }]) => !ok) ?? [];
  return new UserError(
    `The copy of ${from} is not sound (${name}: ${check?.detail}): look at the original with: signalbox verify --data DIR`,
  );
}

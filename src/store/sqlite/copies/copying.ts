/**
 * Runs a copy (`copy.ts`) or a drill (`drill.ts`) in a process of its own, a hidden command: the caller is not blocked,
 * can show progress, and can stop it at any moment, which is impossible with SQLite on a thread. Nothing
 * here waits for a disk that hangs, either: the caller may be the server.
 */
import type { Stats } from "node:fs";
import { stat, statfs } from "node:fs/promises";
import { dirname, join } from "node:path";
import { StoppedError, UserError } from "../../../lib/errors.ts";
import type { CopyOptions, Drilled, Verification } from "../../../domain/storage/files.ts";
import { partialPath } from "../../../lib/files.ts";
import { DATABASE_NAME } from "../files/folder.ts";
import { copyIn, removePrivateFolder } from "../files/private-folder.ts";

const WATCH_INTERVAL_MS = 200;
const MIB = 1024 * 1024;
const STOPPED = "The copy was stopped.";

/** Like {@link import("./copy.ts").copyDatabase}. Also throws `UserError` if the copy is stopped. */
export function copyInProcess(
  from: string,
  to: string,
  options: CopyOptions,
): Promise<Verification> {
  const folder = partialPath(to);
  const args = ["copy-file", from, to, folder, ...(options.earlier ?? [])];
  return run<Verification>(args, { from, folder, database: from }, options);
}

/** Like {@link import("./drill.ts").drillBackup}. Also throws `UserError` if the drill is stopped. */
export function drillInProcess(
  file: string,
  dataDir: string,
  around: string,
  options: CopyOptions,
): Promise<Drilled> {
  const folder = partialPath(join(around, "drill"));
  const paths = { from: file, folder, database: join(dataDir, DATABASE_NAME) };
  return run<Drilled>(["drill-backup", file, dataDir, folder], paths, options);
}

interface Paths {
  readonly from: string;
  /** Where the copy is written. */
  readonly folder: string;
  /** On whose disk signals need space. */
  readonly database: string;
}

async function run<T>(args: readonly string[], paths: Paths, options: CopyOptions): Promise<T> {
  const child = Bun.spawn([...options.program, ...args], {
    stdin: "ignore",
    stdout: "pipe",
    stderr: "pipe",
  });
  const output = Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
    child.exited,
  ]);
  const reason = await watch(child, paths, options);
  const [stdout, stderr, code] = await output;
  if (code === 0) return JSON.parse(stdout) as T;
  // A child that was killed, for example by the same Ctrl-C, has left it.
  await removePrivateFolder(paths.folder);
  const message = reason ?? explainEnd(child, stderr, options);
  throw message === STOPPED ? new StoppedError(message) : new UserError(message);
}

/** Like {@link import("./copy.ts").findOwnBackup}. Throws if it is stopped. */
export async function findOwnInProcess(
  path: string,
  backups: readonly string[],
  { program, signal }: Pick<CopyOptions, "program" | "signal">,
): Promise<string | null> {
  const child = Bun.spawn([...program, "own-backup", path, ...backups], {
    stdin: "ignore",
    stdout: "pipe",
    stderr: "ignore",
    killSignal: "SIGKILL",
    ...(signal === undefined ? {} : { signal }),
  });
  return JSON.parse(await new Response(child.stdout).text()) as string | null;
}

/** Waits for the end of the child. Returns why it was stopped, or null. */
async function watch(
  child: Bun.Subprocess,
  { from, folder, database }: Paths,
  { freeBytesMin, signal, onProgress }: CopyOptions,
): Promise<string | null> {
  const [original, log, ownFolder, toFolder] = await Promise.all(
    [from, `${from}-wal`, dirname(database), dirname(folder)].map(statOf),
  );
  const totalBytes = (original?.size ?? 0) + (log?.size ?? 0);
  const isSameDisk = ownFolder?.dev === toFolder?.dev;
  while (child.exitCode === null && child.signalCode === null) {
    const copiedBytes = Math.min((await statOf(copyIn(folder)))?.size ?? 0, totalBytes);
    onProgress?.({ copiedBytes, totalBytes });
    const tooFull = isSameDisk ? await findTooFull(database, freeBytesMin) : null;
    const reason = signal?.aborted === true ? STOPPED : tooFull;
    if (reason !== null) {
      child.kill("SIGKILL");
      return reason;
    }
    await Promise.race([child.exited, Bun.sleep(WATCH_INTERVAL_MS)]);
  }
  return null;
}

function explainEnd(child: Bun.Subprocess, stderr: string, { signal }: CopyOptions): string {
  // Ctrl-C, the end of a terminal and a stop of the service reach both processes, in either order.
  if (signal?.aborted === true || /^SIG(INT|HUP|TERM)$/.test(String(child.signalCode)))
    return STOPPED;
  if (child.signalCode !== null) return `The copy was killed (${child.signalCode}).`;
  return stderr.trim().replace(/^signalbox: /, "") || `The copy ended with ${child.exitCode}.`;
}

async function findTooFull(database: string, freeBytesMin: number): Promise<string | null> {
  const space = await statfs(dirname(database)).catch(() => null);
  if (space === null) return null;
  const freeBytes = space.bavail * space.bsize;
  if (freeBytes >= freeBytesMin) return null;
  return `The copy was stopped: the disk of ${database} has ${Math.floor(freeBytes / MIB)} MiB left, and signals need ${Math.floor(freeBytesMin / MIB)}. Free some space, or copy to another disk.`;
}

/** Null if the file cannot be read: the copy itself says why. */
function statOf(path: string): Promise<Stats | null> {
  return stat(path).catch(() => null);
}

/**
 * Copying in a process of its own (`copy.ts`, by the hidden command `copy`): the caller goes on, can show
 * how far it is, and can end it at any moment, which nothing can do to SQLite on a thread.
 *
 * The copy may lie on the disk of the original: its free space is watched, and the copy gives way before
 * signals have to.
 */
import { rmSync, statSync } from "node:fs";
import { statfs } from "node:fs/promises";
import { dirname } from "node:path";
import { UserError } from "../../domain/errors.ts";
import { partialPath } from "./copy.ts";
import type { Verification } from "./verify.ts";

export interface CopyOptions {
  /** What starts this program anew; the command and its arguments follow. */
  readonly program: readonly string[];
  /** A copy on the disk of the original is given up when there is less free space than this. */
  readonly freeBytesMin: number;
  /** Gives up. */
  readonly signal?: AbortSignal | undefined;
  readonly onProgress?: ((progress: Progress) => void) | undefined;
}

/** Bytes written so far, and about how many it will be; the verification follows. */
export interface Progress {
  readonly copiedBytes: number;
  readonly totalBytes: number;
}

const WATCH_INTERVAL_MS = 200;
const STOPPED = "The copy was stopped.";

/** As {@link import("./copy.ts").copyDatabase}. Throws `UserError` as well where it is given up. */
export async function copyInProcess(
  from: string,
  to: string,
  options: CopyOptions,
): Promise<Verification> {
  const child = Bun.spawn([...options.program, "copy", from, to], {
    // What SQLite sorts lies where there is room for the copy.
    env: { ...process.env, SQLITE_TMPDIR: dirname(to) },
    stdin: "ignore",
    stdout: "pipe",
    stderr: "pipe",
  });
  const partial = partialPath(to, child.pid);
  const ended = Promise.all([
    child.exited,
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
  ]);
  const reason = await watch(child, from, partial, options);
  const [code, stdout, stderr] = await ended;
  if (code === 0) return JSON.parse(stdout) as Verification;
  // One that was killed, by a Ctrl-C that reached it first for one, has left it.
  rmSync(partial, { force: true });
  throw new UserError(reason ?? explainEnd(child, stderr, options));
}

/** Until the process has ended. Returns why it was given up; null where it was not. */
async function watch(
  child: Bun.Subprocess,
  from: string,
  partial: string,
  { freeBytesMin, signal, onProgress }: CopyOptions,
): Promise<string | null> {
  const totalBytes = sizeOf(from) + sizeOf(`${from}-wal`);
  const isBeside = isOnSameDisk(dirname(from), dirname(partial));
  while (child.exitCode === null && child.signalCode === null) {
    onProgress?.({ copiedBytes: Math.min(sizeOf(partial), totalBytes), totalBytes });
    const tooFull = isBeside ? await findTooFull(from, freeBytesMin) : null;
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
  if (signal?.aborted === true) return STOPPED;
  // Ctrl-C reaches both processes, in either order.
  if (child.signalCode === "SIGINT") return STOPPED;
  if (child.signalCode !== null) return `The copy was ended from outside (${child.signalCode}).`;
  return stderr.trim().replace(/^signalbox: /, "") || `The copy ended with ${child.exitCode}.`;
}

function isOnSameDisk(one: string, other: string): boolean {
  try {
    return statSync(one).dev === statSync(other).dev;
  } catch {
    return false;
  }
}

async function findTooFull(from: string, freeBytesMin: number): Promise<string | null> {
  const space = await statfs(dirname(from)).catch(() => null);
  if (space === null) return null;
  const freeBytes = space.bavail * space.bsize;
  if (freeBytes >= freeBytesMin) return null;
  return `The copy was given up: ${mib(freeBytes)} MiB are free on the disk of ${from}, and signals need ${mib(freeBytesMin)}. Free some space, or copy to another disk.`;
}

function mib(bytes: number): number {
  return Math.floor(bytes / 1024 / 1024);
}

/** 0 for a file that may not be looked at: the copy says why. */
function sizeOf(path: string): number {
  try {
    return statSync(path).size;
  } catch {
    return 0;
  }
}

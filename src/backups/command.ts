/** Runs the command of `--backup-command`, which sends a backup to another machine. */
import { stripVTControlCharacters } from "node:util";
import { setTimeout as delay } from "node:timers/promises";
import ms from "ms";
import { lowerPriority } from "../lib/priority.ts";
import { BACKUP_FILE_VARIABLE } from "./script.ts";

/** Between SIGTERM and SIGKILL; a process that the kernel cannot end is not waited for. */
const GRACE_MS = 2_000;

/** Of what the command writes to stderr. */
const LINES_MAX = 5;
const CHARACTERS_MAX = 1_000;

export class CommandTimeout extends Error {}

/** Runs what `backupScript` returns; `signal` ends it. Throws an `Error` that says how it failed, with the end of its stderr. */
export async function runBackupCommand(
  script: string,
  file: string,
  { timeoutMs, signal }: { readonly timeoutMs: number; readonly signal: AbortSignal },
): Promise<void> {
  // A process group of its own, so that a whole pipeline can be ended.
  const child = Bun.spawn(["/bin/sh", "-c", script], {
    env: { ...process.env, [BACKUP_FILE_VARIABLE]: file },
    stdin: "ignore",
    stdout: "ignore",
    stderr: "pipe",
    detached: true,
  });
  lowerPriority(child.pid);
  const said = new Tail(child.stderr);
  // Not a timer of ours, which cannot be longer than 24 days.
  const timeout = AbortSignal.timeout(timeoutMs);
  const isCut = await Promise.race([
    child.exited.then(() => false),
    untilAborted(AbortSignal.any([signal, timeout])),
  ]);
  if (isCut) {
    killGroup(child.pid, "SIGTERM");
    await Promise.race([child.exited, delay(GRACE_MS, null, { ref: false })]);
  }
  // Also what the command has left in the background.
  killGroup(child.pid, "SIGKILL");
  await Promise.race([
    Promise.all([child.exited, said.ended]),
    delay(GRACE_MS, null, { ref: false }),
  ]);
  if (!isCut && child.exitCode === 0) return;
  const withStderr = (end: string): string => (said.text === "" ? end : `${end}: ${said.text}`);
  if (isCut) {
    const end = `it took longer than ${ms(timeoutMs)}, half of the interval between backups, and was stopped`;
    throw new CommandTimeout(withStderr(end));
  }
  const { exitCode, signalCode } = child;
  throw new Error(
    withStderr(signalCode === null ? `exit code ${exitCode}` : `it was killed (${signalCode})`),
  );
}

function untilAborted(signal: AbortSignal): Promise<true> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve(true);
    signal.addEventListener("abort", () => resolve(true), { once: true });
  });
}

function killGroup(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(-pid, signal);
  } catch {
    // It has ended.
  }
}

/** The last lines of a stream of any length. */
export class Tail {
  /** Never rejects: if the stream fails, the text ends there. */
  readonly ended: Promise<void>;
  #text = "";

  constructor(stream: ReadableStream<Uint8Array>) {
    this.ended = this.#read(stream).catch(() => {});
  }

  get text(): string {
    const lines = stripVTControlCharacters(this.#text).split(/[\r\n]+/);
    return lines
      .filter((line) => line.trim() !== "")
      .slice(-LINES_MAX)
      .join(" / ");
  }

  async #read(stream: ReadableStream<Uint8Array>): Promise<void> {
    const decoder = new TextDecoder();
    for await (const chunk of stream) {
      this.#text = (this.#text + decoder.decode(chunk, { stream: true })).slice(-CHARACTERS_MAX);
    }
  }
}

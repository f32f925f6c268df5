/** Runs the command of `--backup-command`, which sends a backup to another machine. */
import { setPriority } from "node:os";
import { setTimeout as delay } from "node:timers/promises";
import { stripVTControlCharacters } from "node:util";
import ms from "ms";

/** Lower than the server's. */
const NICENESS = 10;
/** How much of its stderr the log and the status show when it fails. */
const LINES_MAX = 5;
const CHARACTERS_MAX = 1_000;
/** Between SIGTERM and SIGKILL; a process that the kernel cannot end is not waited for. */
const GRACE_MS = 2_000;

interface Limits {
  readonly timeoutMs: number;
  /** Ends the command. */
  readonly signal: AbortSignal;
}

/** Throws an `Error` that says how the command failed, with the end of its stderr. */
export async function runBackupCommand(
  command: string,
  file: string,
  { timeoutMs, signal }: Limits,
): Promise<void> {
  // A process group of its own, so that a whole pipeline can be ended.
  const child = Bun.spawn(["/bin/sh", "-c", scriptOf(command), "sh", file], {
    stdin: "ignore",
    stdout: "ignore",
    stderr: "pipe",
    detached: true,
  });
  lowerPriority(child.pid);
  const said = new Tail(child.stderr);
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
  const end = isCut
    ? `it was ended after ${ms(timeoutMs)}`
    : child.signalCode === null
      ? `exit code ${child.exitCode}`
      : `it was killed (${child.signalCode})`;
  throw new Error(said.text === "" ? end : `${end}: ${said.text}`);
}

/**
 * The shell gets the path as its first argument, never as a part of the script, so nothing in it is run.
 * Quotes around `{}` are not needed, and are allowed.
 */
function scriptOf(command: string): string {
  return command.replaceAll(/"\{\}"|'\{\}'|\{\}/g, '"$1"');
}

/** 0: this process. */
export function lowerPriority(pid = 0): void {
  try {
    setPriority(pid, NICENESS);
  } catch {
    // If the system forbids it, a backup at full speed is better than none.
  }
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
class Tail {
  readonly ended: Promise<void>;
  #text = "";

  constructor(stream: ReadableStream<Uint8Array>) {
    this.ended = this.#read(stream);
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

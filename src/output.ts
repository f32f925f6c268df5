/** Text to stdout and stderr, written before the call returns: the process may exit right after. */
import { ptr } from "bun:ffi";
import { writeSync } from "node:fs";
import { systemCode, UserError } from "./domain/errors.ts";
import { loadLibc } from "./libc.ts";

const STDOUT = 1;
const STDERR = 2;
/** Pause before another attempt if the reader is slow and the descriptor does not block. */
const RETRY_MS = 10;
/** How long a message waits for the reader of stderr. */
const STDERR_WAIT_MS = 3_000;
/** A pipe that poll(2) reports as writable takes this much without blocking. */
const PIPE_BYTES = 4_096;
const POLLOUT = 4;
const POLLERR = 8;

/** Output that did not reach its reader. */
export class OutputError extends UserError {
  readonly code: string;

  constructor(code: string) {
    super(`The output could not be written (${code}). Changes made by the command are kept.`);
    this.code = code;
  }
}

/** Waits for a slow reader. Throws {@link OutputError}, with the code `EPIPE` if the reader has gone. */
export function writeToStdout(text: string): void {
  const code = writeAll(STDOUT, Buffer.from(text), Infinity);
  if (code !== null) throw new OutputError(code);
}

let isStderrStuck = false;

/**
 * Drops what the reader does not take within {@link STDERR_WAIT_MS}: a message must not hold up a command.
 * Ignores failures: there is nowhere left to report them.
 */
export function writeToStderr(text: string): void {
  const bytes = Buffer.from(text);
  const deadline = performance.now() + (isStderrStuck ? 0 : STDERR_WAIT_MS);
  for (let at = 0; at < bytes.length; at += PIPE_BYTES) {
    isStderrStuck = !isWritable(STDERR, deadline);
    if (isStderrStuck) return;
    if (writeAll(STDERR, bytes.subarray(at, at + PIPE_BYTES), deadline) !== null) return;
  }
}

/** Returns null, or the system's code for why writing failed. */
function writeAll(descriptor: number, bytes: Uint8Array, deadline: number): string | null {
  let left = bytes;
  while (left.length > 0) {
    try {
      left = left.subarray(writeSync(descriptor, left));
    } catch (error) {
      const code = systemCode(error);
      if (code !== "EAGAIN" || performance.now() > deadline) return code;
      Bun.sleepSync(RETRY_MS);
    }
  }
  return null;
}

/** Waits until the descriptor can be written to, or has failed. False at the deadline. */
function isWritable(descriptor: number, deadline: number): boolean {
  for (;;) {
    const events = poll(descriptor, Math.max(0, Math.ceil(deadline - performance.now())));
    if (events !== null) return events !== 0;
  }
}

/** Whether the reader of stdout has gone, which a command that waits would otherwise not notice. */
export function isStdoutClosed(): boolean {
  return ((poll(STDOUT, 0) ?? 0) & POLLERR) !== 0;
}

/** Returns poll(2)'s events: 0 if there are none after `waitMs`, null if a signal interrupted it. */
function poll(descriptor: number, waitMs: number): number | null {
  const libc = loadLibc();
  if (libc === null) return POLLOUT;
  // struct pollfd { int fd; short events, revents; }
  const request = new DataView(new ArrayBuffer(8));
  request.setInt32(0, descriptor, true);
  request.setInt16(4, POLLOUT, true);
  const ready = libc.poll(ptr(request.buffer), 1, waitMs);
  return ready < 0 ? null : request.getInt16(6, true);
}

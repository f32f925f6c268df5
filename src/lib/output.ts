/** Text to stdout and stderr, written before the call returns: the process may exit right after. */
import { ptr } from "bun:ffi";
import { writeSync } from "node:fs";
import { systemCode, UserError } from "./errors.ts";
import { loadLibc } from "./libc.ts";

const STDOUT = 1;
const STDERR = 2;
/** Pause before another attempt if the reader is slow and the descriptor does not block. */
const RETRY_MS = 10;
const POLLERR = 8;

/** Output that did not reach its reader. */
export class OutputError extends UserError {
  readonly code: string;

  /** `effect`: a sentence about what the command has done. */
  constructor(code: string, effect = "Free space on the disk, or print to another place.") {
    super(`The output could not be written (${code}). ${effect}`);
    this.code = code;
  }
}

/** Waits for a slow reader. Throws {@link OutputError}, with the code `EPIPE` if the reader has gone. */
export function writeToStdout(text: string): void {
  const code = writeAll(STDOUT, text);
  if (code !== null) throw new OutputError(code);
}

/**
 * Waits for a slow reader, and stands still while a reader reads nothing, as any program does. Ignores
 * failures: there is nowhere left to report them.
 */
export function writeToStderr(text: string): void {
  writeAll(STDERR, text);
}

/** Returns null, or the system's code for why writing failed. */
function writeAll(descriptor: number, text: string): string | null {
  let left: Uint8Array = Buffer.from(text);
  while (left.length > 0) {
    try {
      left = left.subarray(writeSync(descriptor, left));
    } catch (error) {
      const code = systemCode(error);
      if (code !== "EAGAIN") return code;
      Bun.sleepSync(RETRY_MS);
    }
  }
  return null;
}

/** Whether the reader of stdout has gone, which a command that waits would otherwise not notice. */
export function isStdoutClosed(): boolean {
  // struct pollfd { int fd; short events, revents; } of poll(2), which reports errors unasked.
  const request = new DataView(new ArrayBuffer(8));
  request.setInt32(0, STDOUT, true);
  loadLibc()?.poll(ptr(request.buffer), 1, 0);
  return (request.getInt16(6, true) & POLLERR) !== 0;
}

/** Text to stdout and stderr, written before the call returns: the process may exit right after. */
import { writeSync } from "node:fs";
import { systemCode, UserError } from "./domain/errors.ts";

const STDOUT = 1;
const STDERR = 2;
/** Pause before another attempt if the reader is slow and the descriptor does not block. */
const RETRY_MS = 10;

/** Output that did not reach its reader. */
export class OutputError extends UserError {
  readonly code: string;

  constructor(code: string) {
    super(`The output could not be written (${code}). Changes made by the command are kept.`);
    this.code = code;
  }
}

/** Throws {@link OutputError}, with the code `EPIPE` if the reader has gone. */
export function writeToStdout(text: string): void {
  const code = writeAll(STDOUT, text);
  if (code !== null) throw new OutputError(code);
}

/** Ignores failures: there is nowhere left to report them. */
export function writeToStderr(text: string): void {
  writeAll(STDERR, text);
}

/** Returns null, or the system's code for why writing failed. */
function writeAll(descriptor: number, text: string): string | null {
  let bytes = Buffer.from(text);
  while (bytes.length > 0) {
    try {
      bytes = bytes.subarray(writeSync(descriptor, bytes));
    } catch (error) {
      const code = systemCode(error);
      if (code !== "EAGAIN") return code;
      Bun.sleepSync(RETRY_MS);
    }
  }
  return null;
}

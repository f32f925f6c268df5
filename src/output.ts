/** Text to stdout and stderr, written before the call returns: the process may exit right after. */
import { writeSync } from "node:fs";
import { systemCode, UserError } from "./domain/errors.ts";

const STDOUT = 1;
const STDERR = 2;
/** How long a reader that is slow is left alone, where the descriptor does not block by itself. */
const RETRY_MS = 10;

/** What was to be printed did not reach its reader. */
export class OutputError extends UserError {
  readonly code: string;

  constructor(code: string) {
    super(`The output could not be written (${code}), and what the command changed stays changed.`);
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

/** Returns the system's code for why it cannot be written, or null. */
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

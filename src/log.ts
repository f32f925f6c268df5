/** The log: JSON lines on stderr, or readable lines if stderr is a terminal. */
import { write as writeWithCallback } from "node:fs";
import { promisify } from "node:util";
import { type Logger, type LoggerOptions, pino } from "pino";
import { systemCode } from "./domain/errors.ts";

const write = promisify(writeWithCallback);

export const logLevels = ["debug", "info", "warn", "error", "silent"] as const;
export type LogLevel = (typeof logLevels)[number];

const STDERR = 2;
/** Lines are collected and written together, at the latest after this time or this many characters. */
const FLUSH_INTERVAL_MS = 100;
const FLUSH_CHARACTERS = 8 * 1024;
/** Lines beyond this are dropped while the reader of the log is stuck. */
const WAITING_CHARACTERS_MAX = 4 * 1024 * 1024;
const RETRY_MS = 20;
/** How long the end of the process waits for a stuck reader. */
const END_TIMEOUT_MS = 500;

export interface Log {
  readonly logger: Logger;
  /** Writes the collected lines before the process ends. Waits at most half a second, never rejects. */
  end(): Promise<void>;
}

/** The format of every line. */
export function logOptions(level: string): LoggerOptions {
  return {
    level,
    base: null,
    timestamp: pino.stdTimeFunctions.isoTime,
    serializers: { err: serializeError },
    formatters: { level: (label) => ({ level: label }) },
  };
}

export async function createLog(level: LogLevel): Promise<Log> {
  const format = process.stderr.isTTY ? await prettifier() : (line: string) => line;
  const lines = new LineWriter(format, (dropped) =>
    logger.error({ lines: dropped }, "log lines were dropped: the reader of the log was too slow"),
  );
  const logger = pino(logOptions(level), lines);
  return { logger, end: () => lines.end() };
}

async function prettifier(): Promise<(line: string) => string> {
  const { prettyFactory } = await import("pino-pretty");
  return prettyFactory({
    colorize: true,
    singleLine: true,
    errorLikeObjectKeys: ["err"],
    translateTime: "SYS:HH:MM:ss.l",
  });
}

/**
 * Writes lines to stderr from another thread (`fs.write`), so that a reader that is slow, stuck or gone
 * never holds up the server or its end. (pino's own writer, sonic-boom, would retry for ever.)
 */
class LineWriter {
  readonly #format: (line: string) => string;
  readonly #onDropped: (lines: number) => void;
  #waiting = "";
  #dropped = 0;
  #timer: Timer | null = null;
  #writing: Promise<void> | null = null;
  #isReaderGone = false;

  constructor(format: (line: string) => string, onDropped: (lines: number) => void) {
    this.#format = format;
    this.#onDropped = onDropped;
  }

  write(line: string): void {
    if (this.#isReaderGone) return;
    const text = this.#format(line);
    if (this.#waiting.length + text.length > WAITING_CHARACTERS_MAX) {
      this.#dropped += 1;
      return;
    }
    this.#waiting += text;
    // Lines that arrive during a write follow it at once.
    if (this.#writing !== null) return;
    if (this.#waiting.length >= FLUSH_CHARACTERS) void this.#flush();
    else this.#timer ??= setTimeout(() => void this.#flush(), FLUSH_INTERVAL_MS).unref();
  }

  async end(): Promise<void> {
    await Promise.race([this.#flush(), Bun.sleep(END_TIMEOUT_MS)]);
  }

  /** Resolves when all lines are written, or never if the reader is stuck. */
  #flush(): Promise<void> {
    if (this.#writing === null && this.#waiting !== "") this.#writing = this.#writeAll();
    return this.#writing ?? Promise.resolve();
  }

  async #writeAll(): Promise<void> {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
    while (this.#waiting !== "") {
      let bytes = Buffer.from(this.#waiting);
      this.#waiting = "";
      this.#reportDropped();
      while (bytes.length > 0) bytes = bytes.subarray(await this.#writeSome(bytes));
    }
    this.#writing = null;
  }

  /** The report takes the place of the dropped lines, after those that were waiting before them. */
  #reportDropped(): void {
    if (this.#dropped === 0) return;
    const lines = this.#dropped;
    this.#dropped = 0;
    this.#onDropped(lines);
  }

  /** Returns how many bytes need no further attempt: those written, or all if writing fails. */
  async #writeSome(bytes: Buffer): Promise<number> {
    try {
      return (await write(STDERR, bytes)).bytesWritten;
    } catch (error) {
      const code = systemCode(error);
      if (code !== "EAGAIN") {
        this.#isReaderGone = code === "EPIPE";
        return bytes.length;
      }
      await Bun.sleep(RETRY_MS);
      return 0;
    }
  }
}

/** Leaves out other properties: some errors carry their input. */
function serializeError(error: unknown): Record<string, unknown> {
  if (!(error instanceof Error)) return { type: typeof error };
  return { type: error.name, message: error.message, stack: error.stack };
}

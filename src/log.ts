/** The log: JSON lines on stderr, readable lines where stderr is a terminal. */
import { write as writeWithCallback } from "node:fs";
import { promisify } from "node:util";
import { type Logger, type LoggerOptions, pino } from "pino";
import { systemCode } from "./domain/errors.ts";

const write = promisify(writeWithCallback);

export const logLevels = ["debug", "info", "warn", "error", "silent"] as const;
export type LogLevel = (typeof logLevels)[number];

const STDERR = 2;
/** Lines are gathered and written together, after this time at the latest. */
const FLUSH_INTERVAL_MS = 100;
const FLUSH_CHARACTERS = 8 * 1024;
/** While the reader of the log is stuck, lines beyond this are dropped rather than kept in memory. */
const WAITING_CHARACTERS_MAX = 4 * 1024 * 1024;
const RETRY_MS = 100;
/** How long the end of the process waits for a reader of the log that is stuck. */
const END_TIMEOUT_MS = 500;

export interface Log {
  readonly logger: Logger;
  /** Writes the lines that were gathered, before the process ends. Never waits for long, never rejects. */
  end(): Promise<void>;
}

/** What a line looks like, wherever it goes. */
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
  const lines = new LineWriter(process.stderr.isTTY ? await prettifier() : (line) => line);
  return { logger: pino(logOptions(level), lines), end: () => lines.end() };
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
 * Writes lines to stderr from another thread (`fs.write`): a reader that is slow, stuck or gone never
 * holds up the server or its end. (sonic-boom, pino's own writer, tries to write for ever then.)
 */
class LineWriter {
  readonly #format: (line: string) => string;
  #waiting = "";
  #timer: Timer | null = null;
  #writing: Promise<void> | null = null;
  #isReaderGone = false;

  constructor(format: (line: string) => string) {
    this.#format = format;
  }

  write(line: string): void {
    const text = this.#format(line);
    const isFull = this.#waiting.length + text.length > WAITING_CHARACTERS_MAX;
    if (isFull || this.#isReaderGone) return;
    this.#waiting += text;
    // Lines that come while others are written follow them at once.
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
      while (bytes.length > 0) bytes = bytes.subarray(await this.#writeSome(bytes));
    }
    this.#writing = null;
  }

  /** Returns how many bytes are done with: what cannot be written is dropped. */
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

/** Only what is surely ours: some errors carry their input as a property. */
function serializeError(error: unknown): Record<string, unknown> {
  if (!(error instanceof Error)) return { type: typeof error };
  return { type: error.name, message: error.message, stack: error.stack };
}

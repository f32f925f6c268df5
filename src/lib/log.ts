/** The log: JSON lines on stderr, or readable lines if stderr is a terminal. */
import { hostname } from "node:os";
import { type Logger, type LoggerOptions, pino } from "pino";
import { isStoreUrl } from "./place.ts";

export const logLevels = ["debug", "info", "warn", "error", "silent"] as const;
export type LogLevel = (typeof logLevels)[number];

const STDERR = 2;
/** Lines beyond this are dropped while the reader of the log is stuck. */
const WAITING_BYTES_MAX = 4 * 1024 * 1024;
/** How long the end of the process waits for a stuck reader. */
const END_TIMEOUT_MS = 500;

export interface Log {
  readonly logger: Logger;
  /** Writes the waiting lines before the process ends. Waits at most half a second, never rejects. */
  end(): Promise<void>;
}

/** The format of every line. `where`: the data; those of servers that share a database name their machine. */
export function logOptions(level: string, where = ""): LoggerOptions {
  return {
    level,
    base: isStoreUrl(where) ? { node: hostname() } : null,
    timestamp: pino.stdTimeFunctions.isoTime,
    serializers: { err: serializeError },
    formatters: { level: (label) => ({ level: label }) },
  };
}

/** A line for what ends a process before it has a log. */
export function fatalLine(msg: string, where: string): string {
  let line = "";
  pino(logOptions("fatal", where), { write: (text) => (line = text) }).fatal(msg);
  return line;
}

/** Warnings of the runtime, which prints them as text by itself. */
export function logWarnings(logger: Logger): void {
  process.removeAllListeners("warning");
  process.on("warning", (err) =>
    logger.warn({ err }, "a warning of the runtime: please report it"),
  );
}

/** Writes from another thread, so that a reader that is slow, stuck or gone never holds up the server or its end. */
export async function createLog(level: LogLevel, where?: string): Promise<Log> {
  const format = process.stderr.isTTY ? await prettifier() : (line: string) => line;
  const stderr = pino.destination({
    dest: STDERR,
    sync: false,
    // With 0, `flush` would not wait.
    minLength: 1,
    maxLength: WAITING_BYTES_MAX,
  });
  let isStuck = false;
  const write = (line: string): void => {
    if (!isStuck) stderr.write(format(line));
  };
  const logger = pino(logOptions(level, where), { write });
  let lines = 0;
  stderr.on("drop", () => (lines += 1));
  stderr.on("drain", () => {
    if (lines === 0) return;
    logger.error({ lines }, "log lines were dropped: the reader of the log was too slow");
    lines = 0;
  });
  // There is nowhere left to report it.
  stderr.on("error", () => {});
  const end = async (): Promise<void> => {
    const { promise: written, resolve } = Promise.withResolvers<false>();
    stderr.flush(() => resolve(false));
    isStuck = await Promise.race([written, Bun.sleep(END_TIMEOUT_MS).then(() => true)]);
    // Otherwise pino waits for the reader when the process exits.
    if (isStuck) stderr.destroy();
  };
  return { logger, end };
}

async function prettifier(): Promise<(line: string) => string> {
  const { prettyFactory } = await import("pino-pretty");
  return prettyFactory({
    colorize: true,
    singleLine: true,
    ignore: "node",
    errorLikeObjectKeys: ["err"],
    translateTime: "SYS:HH:MM:ss.l",
  });
}

/** Leaves out other properties: some errors carry their input. */
function serializeError(error: unknown): Record<string, unknown> {
  if (!(error instanceof Error)) return { type: typeof error };
  return { type: error.name, message: error.message, stack: error.stack };
}

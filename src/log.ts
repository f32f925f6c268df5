/** The log: JSON lines on stderr, readable lines where stderr is a terminal. */
import { type Logger, type LoggerOptions, pino } from "pino";

export const logLevels = ["debug", "info", "warn", "error", "silent"] as const;
export type LogLevel = (typeof logLevels)[number];

const STDERR = 2;
/** Lines are gathered and written together, at the latest after this time. */
const FLUSH_INTERVAL_MS = 100;
const FLUSH_BYTES = 8 * 1024;
/** When whoever reads the log is stuck, lines beyond this are dropped rather than kept in memory. */
const BUFFER_BYTES_MAX = 8 * 1024 * 1024;

export interface Log {
  readonly logger: Logger;
  /** Writes what is gathered: before the process ends. */
  flush(): void;
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
  const options = logOptions(level);
  if (process.stderr.isTTY) {
    const { default: pretty } = await import("pino-pretty");
    const stream = pretty({
      destination: STDERR,
      sync: true,
      colorize: true,
      singleLine: true,
      errorLikeObjectKeys: ["err"],
      translateTime: "SYS:HH:MM:ss.l",
    });
    return { logger: pino(options, stream), flush: () => {} };
  }
  const destination = pino.destination({
    dest: STDERR,
    sync: false,
    minLength: FLUSH_BYTES,
    maxLength: BUFFER_BYTES_MAX,
    periodicFlush: FLUSH_INTERVAL_MS,
  });
  return { logger: pino(options, destination), flush: () => destination.flushSync() };
}

/** Only what is surely ours: some errors carry their input as a property. */
function serializeError(error: unknown): Record<string, unknown> {
  if (!(error instanceof Error)) return { type: typeof error };
  return { type: error.name, message: error.message, stack: error.stack };
}

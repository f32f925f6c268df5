/** The signals that end a command: the first one stops gracefully, a later one at once. */
import { readFileSync } from "node:fs";
import type { Log } from "../lib/log.ts";

/** Under `npx` and `bun run`, Ctrl-C arrives twice: from the terminal and from them. */
const SAME_SIGNAL_MS = 500;

/** Resolves at the first of `signals`. A later one ends the process, unless it repeats the first. */
export function stopSignal(log: Log, signals = stopSignals()): Promise<void> {
  return new Promise((resolve) => {
    onStopSignals(
      (signal) => {
        log.logger.info({ signal }, "stopping: send it again to stop at once");
        resolve();
      },
      () => {
        log.logger.info("stopped at once, as asked twice");
        void log.end().then(() => process.exit(1));
      },
      signals,
    );
  });
}

/**
 * Calls `first` at the first signal, and `later` at a later one, unless it repeats the first. Returns what
 * ends that, so that a signal ends the process again.
 */
export function onStopSignals(
  first: (signal: NodeJS.Signals) => void,
  later: () => void = () => process.exit(1),
  signals = stopSignals(),
): () => void {
  let firstAt: number | null = null;
  const onSignal = (signal: NodeJS.Signals): void => {
    const now = performance.now();
    if (firstAt === null) {
      firstAt = now;
      first(signal);
    } else if (now - firstAt >= SAME_SIGNAL_MS) later();
  };
  for (const signal of signals) process.on(signal, onSignal);
  return () => {
    for (const signal of signals) process.off(signal, onSignal);
  };
}

/** For a command that soon notices that it was aborted; a later signal ends it at once. */
export function stopAtSignals(): AbortSignal {
  const stopping = new AbortController();
  onStopSignals(() => stopping.abort());
  return stopping.signal;
}

/** With SIGHUP, except under `nohup`: a handler would replace its protection. */
function stopSignals(): NodeJS.Signals[] {
  return isHangupIgnored() ? ["SIGTERM", "SIGINT"] : ["SIGTERM", "SIGINT", "SIGHUP"];
}

function isHangupIgnored(): boolean {
  try {
    // A bit per signal, SIGHUP's is the lowest. https://man7.org/linux/man-pages/man5/proc_pid_status.5.html
    return /^SigIgn:.*[13579bdf]$/m.test(readFileSync("/proc/self/status", "utf8"));
  } catch {
    return false;
  }
}

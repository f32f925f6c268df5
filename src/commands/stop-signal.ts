/** SIGTERM and SIGINT: the first one stops gracefully, a later one at once. */
import type { Log } from "../log.ts";

/** Under `npx` and `bun run`, Ctrl-C arrives twice: from the terminal and from them. */
const SAME_SIGNAL_MS = 500;

/** Resolves at the first signal. A later one ends the process, unless it repeats the first. */
export function stopSignal(log: Log): Promise<void> {
  return new Promise((resolve) => {
    onStopSignals(
      (signal) => {
        log.logger.info({ signal }, "stopping: send it again to stop at once");
        resolve();
      },
      () => void log.end().then(() => process.exit(1)),
    );
  });
}

/** Calls `first` at the first signal, and `later` at a later one, unless it repeats the first. */
export function onStopSignals(first: (signal: NodeJS.Signals) => void, later: () => void): void {
  let firstAt: number | null = null;
  const onSignal = (signal: NodeJS.Signals): void => {
    const now = performance.now();
    if (firstAt === null) {
      firstAt = now;
      first(signal);
    } else if (now - firstAt >= SAME_SIGNAL_MS) later();
  };
  process.on("SIGTERM", onSignal);
  process.on("SIGINT", onSignal);
}

/** For a command that soon notices that it was aborted; a later signal ends it at once. */
export function stopAtSignals(): AbortSignal {
  const stopping = new AbortController();
  onStopSignals(
    () => stopping.abort(),
    () => process.exit(1),
  );
  return stopping.signal;
}

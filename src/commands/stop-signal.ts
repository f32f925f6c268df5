/** SIGTERM and SIGINT: the first one stops in good order, another one at once. */
import type { Log } from "../log.ts";

/** Ctrl-C arrives twice under `npx` and `bun run`: from the terminal, and passed on by them. */
const SAME_SIGNAL_MS = 500;

/** Resolves at the first signal. Another one, unless it is the first one repeated, ends the process. */
export function stopSignal(log: Log): Promise<void> {
  return new Promise((resolve) => {
    let firstAt: number | null = null;
    const onSignal = (signal: NodeJS.Signals): void => {
      const now = performance.now();
      if (firstAt === null) {
        firstAt = now;
        log.logger.info({ signal }, "stopping: send it again to stop at once");
        resolve();
      } else if (now - firstAt >= SAME_SIGNAL_MS) {
        void log.end().then(() => process.exit(1));
      }
    };
    process.on("SIGTERM", onSignal);
    process.on("SIGINT", onSignal);
  });
}

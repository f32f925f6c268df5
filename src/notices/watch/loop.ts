/** A round every few seconds, until it is stopped. */
import type { Logger } from "pino";
import { messageOf } from "../../lib/errors.ts";
import { SECOND_MS } from "../../lib/text/time.ts";
import type { Sources } from "./row.ts";
import { Watch } from "./watch.ts";

const EVERY_MS = 5 * SECOND_MS;

/** `isDeciding`: see {@link Watch.round}. Returns what stops it, after the round under way. */
export function startWatch(
  sources: Sources,
  isDeciding: () => boolean,
  log: Logger,
): () => Promise<void> {
  let problem: string | null = null;
  const watch = new Watch(sources, (error) => {
    const reason = messageOf(error);
    if (reason !== problem)
      log.warn({ reason }, "troubles cannot be looked for; it is tried again");
    problem = reason;
  });
  let round: Promise<void> | null = null;
  const timer = setInterval(() => {
    round ??= watch.round(isDeciding()).finally(() => (round = null));
  }, EVERY_MS).unref();
  return async () => {
    clearInterval(timer);
    await round;
  };
}

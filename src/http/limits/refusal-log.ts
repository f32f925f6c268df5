/** Logs requests at fault, up to a number of lines per second: a broken bot sends thousands. */
import type { Logger } from "pino";
import { messageOf } from "../../lib/errors.ts";

export const REFUSAL_LINES_PER_S = 200;
const SECOND_MS = 1_000;

export class RefusalLog {
  readonly #log: Logger;
  #lines = 0;
  #more = 0;
  #isCounting = false;
  #uncounted: string | null = null;

  constructor(log: Logger) {
    this.#log = log;
  }

  /** Calls `describe` only for the lines that are written; the others are counted. */
  write(describe: () => object, kind: "rejected" | "failed" | "differs" = "rejected"): void {
    this.#begin();
    if (this.#lines === REFUSAL_LINES_PER_S) {
      this.#more += 1;
      return;
    }
    this.#lines += 1;
    if (kind === "failed") this.#log.error(describe(), "internal error");
    else if (kind === "differs")
      this.#log.warn(describe(), "a duplicate differs from its original");
    else this.#log.info(describe(), "rejected");
  }

  /** Logs a defect in counting them once, until its message changes: each request may have it. */
  uncounted(err: unknown): void {
    if (messageOf(err) === this.#uncounted) return;
    this.#uncounted = messageOf(err);
    this.#log.error({ err }, "a request was not counted");
  }

  #begin(): void {
    if (this.#isCounting) return;
    this.#isCounting = true;
    setTimeout(() => this.#end(), SECOND_MS).unref();
  }

  #end(): void {
    if (this.#more > 0) {
      this.#log.warn(
        { requests: this.#more },
        `more requests were rejected, failed or differed; the log has ${REFUSAL_LINES_PER_S} per second`,
      );
    }
    this.#lines = 0;
    this.#more = 0;
    this.#isCounting = false;
  }
}

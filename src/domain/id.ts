/**
 * Signal ids: ULIDs that strictly increase in the order in which they are asked for
 * (https://github.com/ulid/spec, "Monotonicity"), continuing behind any id of an earlier run.
 */
import { decodeTime, encodeTime, incrementBase32, ulid } from "ulid";

const TIME_CHARACTERS = 10;
const RANDOM_MAX = "Z".repeat(16);

export class IdSequence {
  #last: string;
  #timeMs: number;

  /** `last` is the greatest id given out so far, or null where there is none. */
  constructor(last: string | null) {
    this.#last = last ?? "";
    this.#timeMs = last === null ? -1 : decodeTime(last);
  }

  /**
   * The id for a signal received at `timeMs` (epoch milliseconds): of that time where the order
   * allows, else of the last id's time with a greater random part.
   */
  next(timeMs: number): string {
    const random = this.#last.slice(TIME_CHARACTERS);
    if (timeMs > this.#timeMs) this.#startAt(timeMs);
    else if (random === RANDOM_MAX) this.#startAt(this.#timeMs + 1);
    else this.#last = this.#last.slice(0, TIME_CHARACTERS) + incrementBase32(random);
    return this.#last;
  }

  #startAt(timeMs: number): void {
    this.#timeMs = timeMs;
    // `ulid(0)` would take the time from the machine's clock.
    this.#last = encodeTime(timeMs, TIME_CHARACTERS) + ulid().slice(TIME_CHARACTERS);
  }
}

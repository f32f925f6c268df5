/**
 * Signal ids: ULIDs that strictly increase (https://github.com/ulid/spec, "Monotonicity"), also across
 * restarts and when the clock steps back.
 */
import { decodeTime, encodeTime, incrementBase32, ulid } from "ulid";
import { MINUTE_MS } from "../../lib/text/time.ts";

const TIME_CHARACTERS = 10;
const RANDOM_MAX = "Z".repeat(16);

export function isUlid(text: string): boolean {
  return /^[0-7][0-9A-HJKMNP-TV-Z]{25}$/.test(text);
}

const AHEAD_MS_MAX = MINUTE_MS;

/** How far ids are ahead of the clock; null: less than a minute, or not at all. */
export function idsAheadMs(newestId: string, now: number): number | null {
  const ahead = decodeTime(newestId) - now;
  return ahead > AHEAD_MS_MAX ? ahead : null;
}

export class IdSequence {
  #last: string;
  #timeMs: number;

  /** `last` is the greatest id so far, or null. */
  constructor(last: string | null) {
    this.#last = last ?? "";
    this.#timeMs = last === null ? -1 : decodeTime(last);
  }

  /**
   * Returns the id of a signal received at `timeMs` (epoch milliseconds). If the clock has not advanced,
   * the id keeps the last id's time and increments its random part.
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
    // `ulid(0)` would use the machine's clock.
    this.#last = encodeTime(timeMs, TIME_CHARACTERS) + ulid().slice(TIME_CHARACTERS);
  }
}

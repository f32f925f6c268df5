/** A token bucket a desk: `perSecond` on average, twice that at once. */
import { AppError } from "../domain/errors.ts";

export const RATE_LIMIT_DEFAULT_PER_S = 5_000;
const BURST_SECONDS = 2;

interface Bucket {
  tokens: number;
  filledAt: number;
}

/** Buckets are kept for each desk that was seen; desks are made by the admin, so they are few. */
export class RateLimiter {
  readonly #perSecond: number;
  readonly #buckets = new Map<number, Bucket>();

  /** 0 turns the limit off. */
  constructor(perSecond: number) {
    this.#perSecond = perSecond;
  }

  /** Takes one token, or throws `rate_limited` with the whole seconds until there is one. `now` in milliseconds, of a clock that never steps back. */
  take(deskId: number, now: number): void {
    if (this.#perSecond === 0) return;
    const burst = this.#perSecond * BURST_SECONDS;
    let bucket = this.#buckets.get(deskId);
    if (bucket === undefined) {
      bucket = { tokens: burst, filledAt: now };
      this.#buckets.set(deskId, bucket);
    }
    const earned = ((now - bucket.filledAt) / 1_000) * this.#perSecond;
    bucket.tokens = Math.min(burst, bucket.tokens + earned);
    bucket.filledAt = now;
    if (bucket.tokens < 1) {
      const waitS = (1 - bucket.tokens) / this.#perSecond;
      throw new AppError("rate_limited", { retryAfterS: Math.max(1, Math.ceil(waitS)) });
    }
    bucket.tokens -= 1;
  }
}

/** Token buckets: `perSecond` on average, and bursts. */
import { AppError } from "../../domain/errors.ts";

const BURST_SECONDS = 2;

interface Bucket {
  tokens: number;
  filledAt: number;
}

/** Keeps a bucket per owner: a desk, a member or a key with a rate of its own. Each has rows in the database, so they are few. */
export class RateLimiter<Owner = number> {
  readonly #perSecond: number;
  readonly #burst: number;
  readonly #message: string | undefined;
  readonly #buckets = new Map<Owner, Bucket>();

  /** 0 turns the limit off. */
  constructor(perSecond: number, burst: number = perSecond * BURST_SECONDS, message?: string) {
    this.#perSecond = perSecond;
    this.#burst = burst;
    this.#message = message;
  }

  /** Takes a token, or throws `rate_limited` with the seconds until the next one. `now`: milliseconds of a monotonic clock. */
  take(owner: Owner, now: number): void {
    if (this.#perSecond === 0) return;
    const burst = this.#burst;
    let bucket = this.#buckets.get(owner);
    if (bucket === undefined) {
      bucket = { tokens: burst, filledAt: now };
      this.#buckets.set(owner, bucket);
    }
    const earned = ((now - bucket.filledAt) / 1_000) * this.#perSecond;
    bucket.tokens = Math.min(burst, bucket.tokens + earned);
    bucket.filledAt = now;
    if (bucket.tokens < 1) {
      const waitS = (1 - bucket.tokens) / this.#perSecond;
      const retryAfterS = Math.max(1, Math.ceil(waitS));
      throw new AppError("rate_limited", {
        retryAfterS,
        ...(this.#message !== undefined && { message: this.#message }),
      });
    }
    bucket.tokens -= 1;
  }
}

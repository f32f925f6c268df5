/** Limits how many requests for the feed are in progress, waiting ones included. */
import { AppError } from "../domain/errors.ts";

export const REQUESTS_MAX = 128;
/** So that no key keeps the others out. */
export const KEY_REQUESTS_MAX = 16;

export class Places {
  readonly #ofKeys = new Map<string, number>();
  #taken = 0;

  /** `key`: what the second limit counts by. Throws `rate_limited` or `unavailable`. Give the place back. */
  take(key: string): Disposable {
    const ofKey = this.#ofKeys.get(key) ?? 0;
    if (ofKey >= KEY_REQUESTS_MAX) {
      const message = `This reader has ${KEY_REQUESTS_MAX} requests in progress; end some, and retry after the seconds in Retry-After.`;
      throw new AppError("rate_limited", { message, retryAfterS: 1 });
    }
    if (this.#taken >= REQUESTS_MAX) {
      const message = `${REQUESTS_MAX} requests for the feed are in progress; retry after the seconds in Retry-After.`;
      throw new AppError("unavailable", { message, retryAfterS: 1 });
    }
    this.#taken += 1;
    this.#ofKeys.set(key, ofKey + 1);
    return { [Symbol.dispose]: () => this.#giveBack(key) };
  }

  #giveBack(key: string): void {
    this.#taken -= 1;
    const left = (this.#ofKeys.get(key) ?? 1) - 1;
    if (left === 0) this.#ofKeys.delete(key);
    else this.#ofKeys.set(key, left);
  }
}

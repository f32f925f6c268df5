/** Runs one read after another, with rests that leave most of the thread's time to the signals that arrive. */

/** How many times as long as a read the rest after it is: readers take at most a fifth of the time. */
export const REST_FACTOR = 4;
/** Timers are no finer. Shorter rests are added up. */
const REST_MS_MIN = 1;
/** A read that took longer than a quarter of this has waited for a disk or a database, and the thread was free. */
const REST_MS_MAX = 200;

export class Throttle {
  #last: Promise<void> = Promise.resolve();
  #restMs = 0;

  /**
   * Runs the work after all earlier work and its rests. `extraMs`: what the work costs the thread outside of
   * this function.
   */
  async run<T>(work: () => T | Promise<T>, extraMs = 0): Promise<T> {
    const before = this.#last;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#last = promise;
    await before;
    const startedAt = performance.now();
    try {
      return await work();
    } finally {
      const restMs = (performance.now() - startedAt + extraMs) * REST_FACTOR;
      this.#restMs = Math.min(REST_MS_MAX, this.#restMs + restMs);
      this.#rest(resolve);
    }
  }

  #rest(then: () => void): void {
    if (this.#restMs < REST_MS_MIN) {
      setImmediate(then);
      return;
    }
    const startedAt = performance.now();
    setTimeout(() => {
      // What a timer that was early or late leaves over is for the next rest.
      this.#restMs = Math.max(0, this.#restMs - (performance.now() - startedAt));
      then();
    }, this.#restMs);
  }
}

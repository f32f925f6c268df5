/** Takes turns at reading, and leaves most of the thread's time to the signals that arrive. */

/** How long a turn is followed by a rest, in turns: readers take at most a fifth of the time. */
export const REST_TURNS = 4;
/** Timers are no finer. Shorter rests are added up. */
const REST_MS_MIN = 1;

export class Turns {
  #last: Promise<void> = Promise.resolve();
  #restMs = 0;

  /**
   * Runs the work after the turns that were asked for before, each followed by its rest. `extraMs`: what
   * the work costs the thread outside of this function.
   */
  async take<T>(work: () => T | Promise<T>, extraMs = 0): Promise<T> {
    const before = this.#last;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#last = promise;
    await before;
    const startedAt = performance.now();
    try {
      return await work();
    } finally {
      this.#restMs += (performance.now() - startedAt + extraMs) * REST_TURNS;
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

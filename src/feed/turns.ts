/** Takes turns at reading, and leaves most of the thread's time to the signals that arrive. */

/** How long a turn is followed by a rest, in turns: reading takes at most a fifth of the time. */
const REST_TURNS = 4;
/** Timers are no finer. Shorter rests are added up. */
const REST_MS_MIN = 1;

export class Turns {
  #last: Promise<void> = Promise.resolve();
  #restMs = 0;

  /** Runs the work after the turns that were asked for before, each followed by its rest. */
  async take<T>(work: () => T | Promise<T>): Promise<T> {
    const before = this.#last;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#last = promise;
    await before;
    const startedAt = performance.now();
    try {
      return await work();
    } finally {
      this.#restMs += (performance.now() - startedAt) * REST_TURNS;
      this.#rest(resolve);
    }
  }

  #rest(then: () => void): void {
    if (this.#restMs < REST_MS_MIN) {
      setImmediate(then);
      return;
    }
    setTimeout(then, this.#restMs);
    this.#restMs = 0;
  }
}

/** Wakes the readers that wait, when signals of their desks are stored. */

/** Signals of this time wake a reader once: a wake-up costs more than a signal. */
const INTERVAL_MS = 2;

interface Sleeper {
  /** Null: every desk. */
  readonly deskId: number | null;
  readonly wake: () => void;
}

export class WakeUps {
  readonly #sleepers = new Set<Sleeper>();
  /** Desks with signals since the last wake-up. */
  readonly #desks = new Set<number>();
  #wokenAt = -Infinity;
  #isWaking = false;

  /** Resolves when signals of the desk are stored, after `ms`, or when the client is gone: look then. */
  sleep(deskId: number | null, ms: number, gone: AbortSignal): Promise<void> {
    if (gone.aborted) return Promise.resolve();
    const { promise, resolve } = Promise.withResolvers<void>();
    const wake = (): void => {
      clearTimeout(timer);
      gone.removeEventListener("abort", wake);
      this.#sleepers.delete(sleeper);
      resolve();
    };
    const sleeper = { deskId, wake };
    const timer = setTimeout(wake, ms);
    gone.addEventListener("abort", wake);
    this.#sleepers.add(sleeper);
    return promise;
  }

  /** Signals of these desks were stored. */
  stored(deskIds: ReadonlySet<number>): void {
    if (this.#sleepers.size === 0) return;
    for (const deskId of deskIds) this.#desks.add(deskId);
    if (this.#isWaking) return;
    this.#isWaking = true;
    // Later in any case, so that the clients get their 201 first.
    const pauseMs = Math.max(0, this.#wokenAt + INTERVAL_MS - performance.now());
    setTimeout(() => this.#wake(), pauseMs);
  }

  wakeAll(): void {
    for (const { wake } of this.#sleepers) wake();
  }

  #wake(): void {
    this.#isWaking = false;
    this.#wokenAt = performance.now();
    for (const { deskId, wake } of this.#sleepers) {
      if (deskId === null || this.#desks.has(deskId)) wake();
    }
    this.#desks.clear();
  }
}

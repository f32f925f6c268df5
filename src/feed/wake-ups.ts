/** Wakes the readers that wait, when signals of their desks are stored. */

/** Signals that are stored within this time wake a reader together: a wake-up costs more than a signal. */
const INTERVAL_MS = 2;

export class WakeUps {
  readonly #sleepers = new Set<Sleeper>();
  /** Desks with signals since the last wake-up. */
  readonly #desks = new Set<number>();
  #wokenAt = -Infinity;
  #isWaking = false;

  /** Returns a sleeper that notices what is stored from now on. `deskId` null: for every desk. */
  register(deskId: number | null): Sleeper {
    const sleeper = new Sleeper(deskId, () => this.#sleepers.delete(sleeper));
    this.#sleepers.add(sleeper);
    return sleeper;
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
    for (const sleeper of this.#sleepers) sleeper.wake();
  }

  #wake(): void {
    this.#isWaking = false;
    this.#wokenAt = performance.now();
    for (const sleeper of this.#sleepers) {
      if (sleeper.deskId === null || this.#desks.has(sleeper.deskId)) sleeper.wake();
    }
    this.#desks.clear();
  }
}

export class Sleeper implements Disposable {
  readonly deskId: number | null;
  readonly #end: () => void;
  /** Since the last sleep. */
  #isWoken = false;
  #wake: (() => void) | null = null;

  constructor(deskId: number | null, end: () => void) {
    this.deskId = deskId;
    this.#end = end;
  }

  /** Resolves when signals were stored since the last sleep, after `ms`, or when the client is gone: look then. */
  async sleep(ms: number, gone: AbortSignal): Promise<void> {
    if (!this.#isWoken && !gone.aborted) {
      const { promise, resolve } = Promise.withResolvers<void>();
      const timer = setTimeout(resolve, ms);
      const wake = (): void => resolve();
      gone.addEventListener("abort", wake);
      this.#wake = wake;
      await promise;
      clearTimeout(timer);
      gone.removeEventListener("abort", wake);
    }
    this.#isWoken = false;
  }

  wake(): void {
    this.#isWoken = true;
    this.#wake?.();
  }

  [Symbol.dispose](): void {
    this.#end();
  }
}

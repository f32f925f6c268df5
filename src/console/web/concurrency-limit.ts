/** Hashing a password takes all of a core for a moment, and the signals need the cores, too. */
export class ConcurrencyLimit {
  readonly #waiting: (() => void)[] = [];
  readonly #waitingMax: number;
  #free: number;

  constructor({ atOnce, waitingMax }: { atOnce: number; waitingMax: number }) {
    this.#free = atOnce;
    this.#waitingMax = waitingMax;
  }

  /** So many wait that a stranger had better come again. */
  get areLong(): boolean {
    return this.#waiting.length >= this.#waitingMax;
  }

  /** In the order that they came. */
  async take<T>(work: () => Promise<T>): Promise<T> {
    if (this.#free > 0) this.#free -= 1;
    else await new Promise<void>((resolve) => this.#waiting.push(resolve));
    try {
      return await work();
    } finally {
      const next = this.#waiting.shift();
      if (next === undefined) this.#free += 1;
      else next();
    }
  }
}

/** A map that forgets: each entry after a time, and the oldest ones when there are too many. */
export class ExpiringMap<V> {
  readonly #max: number;
  /** Oldest first. */
  readonly #entries = new Map<string, Entry<V>>();

  constructor(max: number) {
    this.#max = max;
  }

  get size(): number {
    return this.#entries.size;
  }

  set(name: string, value: V, now: number, lifetimeMs: number): void {
    this.delete(name);
    const [oldest] = this.#entries.size >= this.#max ? this.#entries.keys() : [];
    if (oldest !== undefined) this.delete(oldest);
    // It may be a secret, which must not stay in memory if nobody asks for it again.
    const timer = setTimeout(() => this.delete(name), lifetimeMs).unref();
    this.#entries.set(name, { value, since: now, until: now + lifetimeMs, timer });
  }

  get(name: string, now: number): V | null {
    return this.#current(name, now)?.value ?? null;
  }

  /** Returns when the entry is forgotten, epoch milliseconds; 0 if there is none. */
  endOf(name: string, now: number): number {
    return this.#current(name, now)?.until ?? 0;
  }

  /** Like {@link get}, once. */
  take(name: string, now: number): V | null {
    const value = this.get(name, now);
    this.delete(name);
    return value;
  }

  delete(name: string): void {
    clearTimeout(this.#entries.get(name)?.timer);
    this.#entries.delete(name);
  }

  /** A clock that is set back also ends an entry: none lasts longer than it should. */
  #current(name: string, now: number): Entry<V> | null {
    const entry = this.#entries.get(name);
    if (entry === undefined) return null;
    if (now >= entry.since && now < entry.until) return entry;
    this.delete(name);
    return null;
  }
}

interface Entry<V> {
  readonly value: V;
  /** Epoch milliseconds. */
  readonly since: number;
  readonly until: number;
  readonly timer: ReturnType<typeof setTimeout>;
}

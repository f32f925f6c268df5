/** A map that forgets: each entry after a time, and the oldest ones when there are too many. */
export class ExpiringMap<V> {
  readonly #lifetimeMs: number;
  readonly #max: number;
  /** Oldest first. `since`: epoch milliseconds. */
  readonly #entries = new Map<string, { readonly value: V; readonly since: number }>();

  constructor(lifetimeMs: number, max: number) {
    this.#lifetimeMs = lifetimeMs;
    this.#max = max;
  }

  set(name: string, value: V, now: number): void {
    this.#entries.delete(name);
    const [oldest] = this.#entries.size >= this.#max ? this.#entries.keys() : [];
    if (oldest !== undefined) this.#entries.delete(oldest);
    this.#entries.set(name, { value, since: now });
  }

  get(name: string, now: number): V | null {
    return this.#current(name, now)?.value ?? null;
  }

  /** Returns when the entry is forgotten, epoch milliseconds; 0 if there is none. */
  endOf(name: string, now: number): number {
    const entry = this.#current(name, now);
    return entry === null ? 0 : entry.since + this.#lifetimeMs;
  }

  /** Like {@link get}, once. */
  take(name: string, now: number): V | null {
    const value = this.get(name, now);
    this.#entries.delete(name);
    return value;
  }

  delete(name: string): void {
    this.#entries.delete(name);
  }

  /** A clock that is set back also ends an entry: none lasts longer than it should. */
  #current(name: string, now: number) {
    const entry = this.#entries.get(name);
    if (entry === undefined) return null;
    if (now >= entry.since && now < entry.since + this.#lifetimeMs) return entry;
    this.#entries.delete(name);
    return null;
  }
}

/** Tells the readers that wait when signals of their desks are stored. */

/** Signals that are stored within this time are told together: telling a reader costs more than a signal. */
const INTERVAL_MS = 2;

export class CommitNotifier {
  readonly #subscriptions = new Set<Subscription>();
  /** Desks with signals that nobody was told of yet. */
  readonly #desks = new Set<number>();
  #notifiedAt = -Infinity;
  #isScheduled = false;

  /** Notices what is stored from now on. `deskId` null: for every desk. */
  subscribe(deskId: number | null): Subscription {
    const subscription = new Subscription(deskId, () => this.#subscriptions.delete(subscription));
    this.#subscriptions.add(subscription);
    return subscription;
  }

  /** Signals of these desks were stored. */
  stored(deskIds: ReadonlySet<number>): void {
    if (this.#subscriptions.size === 0) return;
    for (const deskId of deskIds) this.#desks.add(deskId);
    if (this.#isScheduled) return;
    this.#isScheduled = true;
    // Later in any case, so that the clients get their 201 first.
    const pauseMs = Math.max(0, this.#notifiedAt + INTERVAL_MS - performance.now());
    setTimeout(() => this.#notify(), pauseMs);
  }

  /** Ends every wait. */
  wakeAll(): void {
    for (const subscription of this.#subscriptions) subscription.wake();
  }

  #notify(): void {
    this.#isScheduled = false;
    this.#notifiedAt = performance.now();
    for (const subscription of this.#subscriptions) {
      const { deskId } = subscription;
      if (deskId === null || this.#desks.has(deskId)) subscription.wake();
    }
    this.#desks.clear();
  }
}

export class Subscription implements Disposable {
  readonly deskId: number | null;
  readonly #end: () => void;
  /** Signals were stored since the last wait. */
  #isBehind = false;
  #endWait: () => void = () => {};

  constructor(deskId: number | null, end: () => void) {
    this.deskId = deskId;
    this.#end = end;
  }

  /** Resolves when signals were stored since the last wait, after `ms`, or when the client is gone: look then. */
  async wait(ms: number, gone: AbortSignal): Promise<void> {
    if (!this.#isBehind && !gone.aborted) {
      const { promise, resolve } = Promise.withResolvers<void>();
      // An AbortSignal for each wait would cost ten times as much.
      this.#endWait = resolve;
      const timer = setTimeout(resolve, ms);
      gone.addEventListener("abort", this.#endWait);
      await promise;
      clearTimeout(timer);
      gone.removeEventListener("abort", this.#endWait);
    }
    this.#isBehind = false;
  }

  wake(): void {
    this.#isBehind = true;
    this.#endWait();
  }

  [Symbol.dispose](): void {
    this.#end();
  }
}

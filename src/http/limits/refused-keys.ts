/** Keys that have ended and are still sent, for `status` and `doctor`. */
import { DAY_MS } from "../../lib/text/time.ts";

export class RefusedKeys {
  /** By the key's id, in the order of the latest request: epoch milliseconds. */
  readonly #latest = new Map<string, number>();

  record(keyId: string, now: number): void {
    // A key that is set again would keep its place.
    this.#latest.delete(keyId);
    this.#latest.set(keyId, now);
    for (const [id, at] of this.#latest) {
      if (at >= now - DAY_MS) break;
      this.#latest.delete(id);
    }
  }

  list(): { readonly key_id: string; readonly at: number }[] {
    return [...this.#latest].map(([key_id, at]) => ({ key_id, at }));
  }
}

/** Limits how many requests for the feed are in progress, waiting ones included. */
import { AppError } from "../domain/errors.ts";

export const REQUESTS_MAX = 128;
/** So that no key keeps the others out. */
export const KEY_REQUESTS_MAX = 16;
/** So that no desk keeps the others out, however many keys it has. The keys of all desks have so many together. */
export const DESK_REQUESTS_MAX = 32;

/** Whose request it is. */
export interface Caller {
  /** Null: who opens the ops socket, whose requests are counted apart from those of keys. */
  readonly keyId: string | null;
  /** Null: all desks. */
  readonly deskId: number | null;
}

interface Limit {
  /** What is counted. */
  readonly of: string;
  readonly max: number;
  readonly error: "rate_limited" | "unavailable";
  readonly who: string;
}

export class ConcurrencyLimit {
  readonly #inProgress = new Map<string, number>();

  /** Counts a request until it is disposed of. Throws `rate_limited` or `unavailable`. */
  begin(caller: Caller): Disposable {
    const limits = limitsOf(caller);
    for (const { of, max, error, who } of limits) {
      if ((this.#inProgress.get(of) ?? 0) < max) continue;
      const message = `${who} ${max} requests in progress; end some, and retry after the seconds in Retry-After.`;
      throw new AppError(error, { message, retryAfterS: 1 });
    }
    const add = (change: 1 | -1): void => {
      for (const { of } of limits) {
        const count = (this.#inProgress.get(of) ?? 0) + change;
        if (count === 0) this.#inProgress.delete(of);
        else this.#inProgress.set(of, count);
      }
    };
    add(1);
    return { [Symbol.dispose]: () => add(-1) };
  }
}

function limitsOf({ keyId, deskId }: Caller): Limit[] {
  const own = { max: KEY_REQUESTS_MAX, error: "rate_limited", who: "This reader has" } as const;
  if (keyId === null) return [{ ...own, of: "socket" }];
  const who = deskId === null ? "The readers of all desks have" : "The readers of this desk have";
  return [
    { ...own, of: `key ${keyId}` },
    { of: `desk ${deskId}`, max: DESK_REQUESTS_MAX, error: "rate_limited", who },
    { of: "all", max: REQUESTS_MAX, error: "unavailable", who: "All readers together have" },
  ];
}

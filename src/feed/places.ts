/** Limits how many requests for the feed are in progress, waiting ones included. */
import { AppError } from "../domain/errors.ts";

export const REQUESTS_MAX = 128;
/** So that no key keeps the others out. */
export const KEY_REQUESTS_MAX = 16;
/** So that no desk keeps the others out, however many keys it has. The keys of all desks have so many together. */
export const DESK_REQUESTS_MAX = 32;

/** Whose request it is. */
export interface PlaceOwner {
  /** Null: who opens the ops socket, whose places are apart from those of keys. */
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

export class Places {
  readonly #taken = new Map<string, number>();

  /** Throws `rate_limited` or `unavailable`. Give the place back. */
  take(reader: PlaceOwner): Disposable {
    const limits = limitsOf(reader);
    for (const { of, max, error, who } of limits) {
      if ((this.#taken.get(of) ?? 0) < max) continue;
      const message = `${who} ${max} requests in progress; end some, and retry after the seconds in Retry-After.`;
      throw new AppError(error, { message, retryAfterS: 1 });
    }
    for (const { of } of limits) this.#add(of, 1);
    return {
      [Symbol.dispose]: () => {
        for (const { of } of limits) this.#add(of, -1);
      },
    };
  }

  #add(of: string, change: 1 | -1): void {
    const count = (this.#taken.get(of) ?? 0) + change;
    if (count === 0) this.#taken.delete(of);
    else this.#taken.set(of, count);
  }
}

function limitsOf({ keyId, deskId }: PlaceOwner): Limit[] {
  const ofReader = {
    max: KEY_REQUESTS_MAX,
    error: "rate_limited",
    who: "This reader has",
  } as const;
  if (keyId === null) return [{ ...ofReader, of: "socket" }];
  const who = deskId === null ? "The readers of all desks have" : "The readers of this desk have";
  return [
    { ...ofReader, of: `key ${keyId}` },
    { of: `desk ${deskId}`, max: DESK_REQUESTS_MAX, error: "rate_limited", who },
    { of: "all", max: REQUESTS_MAX, error: "unavailable", who: "All readers together have" },
  ];
}

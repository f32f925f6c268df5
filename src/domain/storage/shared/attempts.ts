/** Counts with an end. */
import type { Awaitable } from "../awaitable.ts";

export interface Count {
  readonly times: number;
  /** How long it lasts from now. */
  readonly leftMs: number;
}

/** Attempts at something, counted over all servers of one database. A crash of that database may forget them. */
export interface Attempts {
  /** Counts one more, and returns the count with it. It ends this long after its first one. */
  add(name: string, windowMs: number): Awaitable<Count>;
  /** Returns null if there were none. */
  find(name: string): Awaitable<Count | null>;
  /** Counts one less. */
  takeBack(name: string): Awaitable<void>;
}

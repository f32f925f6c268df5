/** How stored signals are read. */
import type { SignalList, SignalQuery, StoredSignal } from "../signal/stored-signal.ts";
import type { Awaitable } from "./awaitable.ts";

/** Signals as people and programs read them. Each call takes milliseconds, however many signals there are. */
export interface SignalReader {
  /** In commit order or against it, from a cursor on: pages, exports and feeds are made of this. */
  list(query: SignalQuery): Awaitable<SignalList>;
  /** Returns null for an unknown id and for another desk's; `deskId` null: of any desk. */
  get(deskId: number | null, id: string): Awaitable<StoredSignal | null>;
  /**
   * By `id` or `client_signal_id`; `deskId` null: of all desks. Several, if one signal's
   * `client_signal_id` is another's `id`, or desks use the same one.
   */
  find(deskId: number | null, text: string): Awaitable<StoredSignal[]>;
  /** The different symbols of a desk's latest signals (two thousand or so), the latest first. */
  symbols(deskId: number, limit: number): Awaitable<string[]>;
  /** How far the signal with this id is into the query's range in the order of storage: 0 to 1. */
  progress(query: SignalQuery, id: string): Awaitable<number>;
  /** How many signals, of all desks, were received at `from` or later, and before `to`. */
  countBetween(from: number, to: number): Awaitable<number>;
}

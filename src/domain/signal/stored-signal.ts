/** A stored signal, as lists and exports show it. */
import type { Signal } from "./signal.ts";

export interface StoredSignal extends Signal {
  readonly desk: string;
  /** ULID; strictly rises in the order of storage. */
  readonly id: string;
  /** Epoch milliseconds, by the server's clock. */
  readonly received_at: number;
  /** The key that it was sent with. */
  readonly key_id: string;
  readonly key_label: string | null;
  readonly key_last4: string;
}

/** Which signals: null for all. */
export interface SignalFilter {
  readonly source: string | null;
  readonly type: string | null;
  /** A part of the symbol; upper and lower case are the same. */
  readonly symbol: string | null;
  readonly side: string | null;
  readonly direction: string | null;
  readonly key_id: string | null;
  /** Only signals with one of these ids: a thousand or so. */
  readonly ids: readonly string[] | null;
  /** Received at this moment or later; epoch milliseconds. */
  readonly from: number | null;
  /** Received before this moment; epoch milliseconds. */
  readonly to: number | null;
}

export const everySignal: SignalFilter = {
  source: null,
  type: null,
  symbol: null,
  side: null,
  direction: null,
  key_id: null,
  ids: null,
  from: null,
  to: null,
};

/**
 * Which signals, and from where on. Cursors are ids of signals: a place in the order of storage would tell
 * a desk how many signals the others have sent.
 */
export interface SignalQuery {
  /** Null: all desks. */
  readonly deskId: number | null;
  readonly filter: SignalFilter;
  /** The order of the result: commit order is `oldest`. */
  readonly order: "newest" | "oldest";
  /** Only signals older than this id. */
  readonly before?: string | null;
  /** Only signals newer than this id. */
  readonly after?: string | null;
  readonly limit: number;
  /** Ends with the signal whose metadata makes the total exceed this, in UTF-16 units. */
  readonly metadataUnitsMax?: number;
}

export interface SignalList {
  /** In the order of the query. */
  readonly signals: readonly StoredSignal[];
  /** The cursor of the next call, `before` or `after` by the order; null: there are no more now. */
  readonly more: string | null;
  /** Set if the search ended here because it had looked at many signals and found few. */
  readonly searchedTo: { readonly id: string; readonly received_at: number } | null;
}

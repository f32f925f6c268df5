/** A signal as it lies in the store, for people who look for it. */
import type { Signal } from "./signal.ts";

export interface StoredSignal extends Signal {
  /** ULID; strictly rises in the order of storage. */
  readonly id: string;
  /** Epoch milliseconds, by the server's clock. */
  readonly received_at: number;
  /** The key that it was sent with. */
  readonly key_id: string;
  readonly key_label: string | null;
  readonly key_last4: string;
}

/** Which signals: null for all. Texts are compared code point by code point. */
export interface SignalFilter {
  readonly source: string | null;
  readonly type: string | null;
  readonly symbol: string | null;
  readonly side: string | null;
  readonly key_id: string | null;
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
  key_id: null,
  from: null,
  to: null,
};

/**
 * A part of a desk's signals. Cursors are ids of signals, which say nothing about other desks; the
 * order of storage would tell how many signals those have sent.
 */
export interface SignalRequest {
  readonly deskId: number;
  readonly filter: SignalFilter;
  /** Only signals older than this id. */
  readonly before?: string | null;
  /** Only signals newer than this id. */
  readonly after?: string | null;
  readonly limit: number;
}

/** Newest first. */
export interface SignalPage {
  readonly signals: readonly StoredSignal[];
  /** The `before` of the page behind this one; null where there is none. */
  readonly older: string | null;
  /** The `after` of the page ahead of this one; null where there is none. */
  readonly newer: string | null;
  /** Where the search was given up, because it had looked at many signals and found few. */
  readonly searchedTo: { readonly id: string; readonly received_at: number } | null;
}

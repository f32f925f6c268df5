/** How the feed is read. */
import type { KeyLife } from "../key/key.ts";
import type { Awaitable } from "./awaitable.ts";
import type { SignalReader } from "./signals.ts";

/** What a request for stored signals uses. Each method throws `unavailable` if the storage cannot be read. */
export interface FeedStore extends Pick<SignalReader, "list" | "get"> {
  /** Returns null for an unknown key and for one that is not a read key. */
  findReader(key: string): Awaitable<Reader | null>;
  /** Records when a read key was used, at most once a minute. */
  recordRead(keyId: string, at: number): void;
  /** Until it is disposed of, `onStored` tells of what other servers store in the same database as well. */
  watch(): Disposable;
  /** By the desk's name; null if it is unknown. */
  findDeskId(name: string): Awaitable<number | null>;
}

/** Who reads the feed with a key, in whatever state the key is. */
export interface Reader extends KeyLife {
  readonly keyId: string;
  /** Null: all desks. */
  readonly deskId: number | null;
  readonly deskName: string | null;
  /** As of a `KeyOwner`. */
  readonly limits: string | null;
}

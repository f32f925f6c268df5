/** Texts with an end. */
import type { Awaitable } from "../awaitable.ts";

/**
 * What all servers of one database remember for minutes; the one server of a folder remembers it in memory. Secrets
 * are sealed by the writer.
 */
export interface Notes {
  /** Replaces a note. */
  set(name: string, text: string, lifetimeMs: number): Awaitable<void>;
  /** Returns false, and changes nothing, if there is one: of several at once, one gets true. */
  add(name: string, text: string, lifetimeMs: number): Awaitable<boolean>;
  get(name: string): Awaitable<string | null>;
  /** Like {@link get}, once. */
  take(name: string): Awaitable<string | null>;
  delete(name: string): Awaitable<void>;
}

/** Those of a database that several servers may use. */
export interface SharedNotes extends Notes {
  /** Replaces a note, and has no end. */
  keep(name: string, text: string): Awaitable<void>;
  /** Gives a note another lifetime. Returns false, and changes nothing, if there is none with this text. */
  renew(name: string, text: string, lifetimeMs: number): Awaitable<boolean>;
  /** Name → text. `prefix`: ASCII. */
  startingWith(prefix: string): Awaitable<ReadonlyMap<string, string>>;
}

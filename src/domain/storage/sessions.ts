/** The console's sessions. */
import type { Session } from "../member/session.ts";
import type { Awaitable } from "./awaitable.ts";

/** The console's sessions. In no backup, and a restore ends them all. A removed one never comes back. */
export interface SessionStore {
  /** Removes the member's least recently used sessions, so that they have at most `perMemberMax` with this one. */
  add(session: Session, perMemberMax: number): Awaitable<void>;
  find(id: string): Awaitable<Session | null>;
  /** The member's, the last used first. */
  list(memberId: string): Awaitable<Session[]>;
  /** Does nothing for a removed session, or if the disk is full: pages can be read all the same. */
  recordUse(id: string, at: number): Awaitable<void>;
  /** Whether the session was there. */
  remove(id: string): Awaitable<boolean>;
  /** Removes one that is refused anyway. Does nothing if the disk is full. */
  discard(id: string): Awaitable<void>;
  /** Removes sessions of all members that were last used longer ago than this, or as far in the future. */
  removeUnused(now: number, idleMsMax: number): Awaitable<void>;
}

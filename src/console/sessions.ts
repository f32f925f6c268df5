/**
 * Who is signed in, in memory: a restart signs everyone out. Kept are only hashes of the tokens that the
 * browsers have.
 */
import type { Account } from "../domain/member.ts";
import type { SignedIn } from "./visit.ts";

/** Without a request for so long it ends (OWASP ASVS 7.3.1). */
export const SESSION_IDLE_MS_MAX = 12 * 60 * 60 * 1_000;
/** However busy it is (ASVS 7.3.2). */
export const SESSION_AGE_MS_MAX = 7 * 24 * 60 * 60 * 1_000;
const SESSIONS_MAX = 10_000;

export interface Session {
  readonly memberId: string;
  /** What the member's was when the session began: no clock tells what came first within a millisecond. */
  readonly signedOutAt: number;
  /** Epoch milliseconds. */
  readonly startedAt: number;
  seenAt: number;
}

/** Times are epoch milliseconds. */
export interface ListedSession {
  readonly startedAt: number;
  readonly seenAt: number;
  /** The one that asks. */
  readonly isOwn: boolean;
}

/** The member where they are still one; null where they were removed. */
export type FindMember = (memberId: string) => Account | null;

export class Sessions {
  readonly #findMember: FindMember;
  readonly #sessions = new Map<string, Session>();

  constructor(findMember: FindMember) {
    this.#findMember = findMember;
  }

  /**
   * Returns the token for the cookie. `member`: as they were when it was proved that it is them. Whoever
   * was signed out everywhere since then is not signed in.
   */
  start(
    { id: memberId, signed_out_at: signedOutAt }: Pick<Account, "id" | "signed_out_at">,
    now: number,
  ): string {
    this.#prune(now);
    const token = randomToken();
    this.#sessions.set(hash(token), { memberId, signedOutAt, startedAt: now, seenAt: now });
    return token;
  }

  /** Null for a token that is unknown, over, or of somebody who was removed or signed out everywhere. */
  find(token: string, now: number): SignedIn | null {
    const name = hash(token);
    const session = this.#sessions.get(name);
    if (session === undefined) return null;
    const member = isOver(session, now) ? null : this.#findMember(session.memberId);
    if (member === null || session.signedOutAt !== member.signed_out_at) {
      this.#sessions.delete(name);
      return null;
    }
    session.seenAt = now;
    const { id, email, desk, desk_id: deskId } = member;
    return { memberId: id, email, desk, deskId };
  }

  end(token: string): void {
    this.#sessions.delete(hash(token));
  }

  /** The member's, newest first. `token`: of the one that asks. */
  list(memberId: string, token: string, now: number): ListedSession[] {
    const own = hash(token);
    const member = this.#findMember(memberId);
    return [...this.#sessions]
      .filter(([, session]) => session.memberId === memberId && !isOver(session, now))
      .filter(([, session]) => session.signedOutAt === member?.signed_out_at)
      .map(([name, { startedAt, seenAt }]) => ({ startedAt, seenAt, isOwn: name === own }))
      .toSorted((one, other) => other.startedAt - one.startedAt);
  }

  /** The oldest go first where there are too many. */
  #prune(now: number): void {
    for (const [name, session] of this.#sessions) {
      if (isOver(session, now) || this.#sessions.size >= SESSIONS_MAX) this.#sessions.delete(name);
    }
  }
}

/** A clock that steps back ends nothing and makes nothing last for ever. */
function isOver({ startedAt, seenAt }: Session, now: number): boolean {
  return (
    Math.abs(now - seenAt) > SESSION_IDLE_MS_MAX || Math.abs(now - startedAt) > SESSION_AGE_MS_MAX
  );
}

/** 256 random bits, base64url. */
export function randomToken(): string {
  return Buffer.from(crypto.getRandomValues(new Uint8Array(32))).toString("base64url");
}

function hash(token: string): string {
  return new Bun.CryptoHasher("sha256").update(token).digest("hex");
}

/** Who is signed in, in memory: a restart signs everyone out. Keeps only hashes of the tokens. */
import { type Account, generateToken } from "../../domain/member.ts";
import type { Awaitable } from "../../domain/storage.ts";
import type { SignedIn } from "./visit.ts";

/** A session ends after this time without a request (OWASP ASVS 7.3.1). */
export const SESSION_IDLE_MS_MAX = 12 * 60 * 60 * 1_000;
/** A session ends after this time, however busy it is (ASVS 7.3.2). */
export const SESSION_AGE_MS_MAX = 7 * 24 * 60 * 60 * 1_000;
/** When a member starts one more, the one that was used least recently ends. */
export const SESSIONS_PER_MEMBER_MAX = 20;
/** How long after a sign-in with a password its member may add the passkey that the desk requires. */
export const ADD_PASSKEY_MS_MAX = 10 * 60 * 1_000;

/** How a session begins. */
interface Beginning {
  /** The passkey that it begins with; null for a password. */
  readonly passkeyId: string | null;
  /** The `User-Agent` in short. */
  readonly browser: string;
  /** The client's address. */
  readonly address: string;
}

/** Times are epoch milliseconds. */
export interface Session extends Beginning {
  /** Names the session on its member's pages. It signs nobody in. */
  readonly id: string;
  readonly startedAt: number;
  readonly seenAt: number;
}

interface Kept extends Session {
  /** Its key in the map: the hash of the token. */
  readonly name: string;
  readonly memberId: string;
  /** The member's value when the session began. Compared, because clocks do not order events within a millisecond. */
  readonly signedOutAt: number;
  seenAt: number;
}

/** Returns null if the member or the passkey was removed. */
export type FindMember = (memberId: string, passkeyId: string | null) => Awaitable<Account | null>;

export class Sessions {
  readonly #findMember: FindMember;
  /** By the hash of the token. */
  readonly #sessions = new Map<string, Kept>();

  constructor(findMember: FindMember) {
    this.#findMember = findMember;
  }

  /**
   * Returns the token for the cookie. `member`: as they were when they proved who they are. If they were
   * signed out everywhere since then, the session does not hold.
   */
  async start(
    { id: memberId, signed_out_at: signedOutAt }: Pick<Account, "id" | "signed_out_at">,
    { passkeyId, browser, address }: Beginning,
    now: number,
  ): Promise<string> {
    // Ends the member's sessions that no longer hold: they must not push out one that does.
    await this.list(memberId, now);
    // No `await` from here on: of two sign-ins at once, each must count the other's session.
    for (const session of this.#sessions.values()) if (isOver(session, now)) this.#end(session);
    this.#sessionsOf(memberId)
      .slice(SESSIONS_PER_MEMBER_MAX - 1)
      .forEach((session) => this.#end(session));
    const token = generateToken();
    const name = hash(token);
    const id = name.slice(0, 16);
    const times = { startedAt: now, seenAt: now };
    const owner = { name, id, memberId, signedOutAt };
    this.#sessions.set(name, { ...owner, passkeyId, browser, address, ...times });
    return token;
  }

  /** Null for a token that is unknown, or whose session does not hold any more. */
  async find(token: string, now: number): Promise<SignedIn | null> {
    const session = this.#sessions.get(hash(token));
    const member = session === undefined ? null : await this.#memberOf(session, now);
    if (session === undefined || member === null) return null;
    session.seenAt = now;
    const { id, email, desk, desk_id: deskId } = member;
    const mustAddPasskey = member.passkeys_required && session.passkeyId === null;
    const { signedOutAt } = session;
    return { memberId: id, email, desk, deskId, session, signedOutAt, mustAddPasskey };
  }

  /** Whether the token's session holds. Unlike {@link find}, it does not count as a use of the session. */
  async holds(token: string, now: number): Promise<boolean> {
    const session = this.#sessions.get(hash(token));
    return session !== undefined && (await this.#memberOf(session, now)) !== null;
  }

  end(token: string): void {
    this.#sessions.delete(hash(token));
  }

  /** Ends one of the member's sessions by its id, and returns it; null if there is none. */
  endOne(memberId: string, id: string): Session | null {
    const session = this.#sessionsOf(memberId).find((one) => one.id === id) ?? null;
    if (session !== null) this.#end(session);
    return session;
  }

  /** Returns the member's sessions that hold, the last used first. */
  async list(memberId: string, now: number): Promise<Session[]> {
    const sessions = this.#sessionsOf(memberId);
    const members = await Promise.all(sessions.map((session) => this.#memberOf(session, now)));
    return sessions.filter((_, index) => members[index] !== null);
  }

  /** Returns also sessions that do not hold; the last used first. */
  #sessionsOf(memberId: string): Kept[] {
    return [...this.#sessions.values()]
      .filter((session) => session.memberId === memberId)
      .toSorted((one, other) => other.seenAt - one.seenAt);
  }

  /**
   * Ends a session and returns null if it is over, its member was removed or signed out everywhere, its
   * passkey was removed, or it began with a password where only a passkey will do.
   */
  async #memberOf(session: Kept, now: number): Promise<Account | null> {
    const { memberId, passkeyId, signedOutAt, name } = session;
    const member = isOver(session, now) ? null : await this.#findMember(memberId, passkeyId);
    // While the member was read, another request may have ended the session.
    if (this.#sessions.get(name) !== session) return null;
    if (member?.signed_out_at === signedOutAt && !isTooWeak(session, member, now)) return member;
    this.#end(session);
    return null;
  }

  #end({ name }: Kept): void {
    this.#sessions.delete(name);
  }
}

function isTooWeak({ passkeyId, startedAt }: Session, member: Account, now: number): boolean {
  if (!member.passkeys_required || passkeyId !== null) return false;
  return member.passkeys > 0 || Math.abs(now - startedAt) > ADD_PASSKEY_MS_MAX;
}

/** A clock that steps back ends nothing and makes nothing last for ever. */
function isOver({ startedAt, seenAt }: Session, now: number): boolean {
  return (
    Math.abs(now - seenAt) > SESSION_IDLE_MS_MAX || Math.abs(now - startedAt) > SESSION_AGE_MS_MAX
  );
}

function hash(token: string): string {
  return new Bun.CryptoHasher("sha256").update(token).digest("hex");
}

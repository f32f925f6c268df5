/**
 * Who is signed in, in memory: a restart signs everyone out. Only hashes of the browsers' tokens are kept.
 */
import type { Account } from "../../domain/member.ts";
import type { Awaitable } from "../../domain/storage.ts";
import type { SignedIn } from "./visit.ts";

/** A session ends after so long without a request (OWASP ASVS 7.3.1). */
export const SESSION_IDLE_MS_MAX = 12 * 60 * 60 * 1_000;
/** However busy it is, a session ends after so long (ASVS 7.3.2). */
export const SESSION_AGE_MS_MAX = 7 * 24 * 60 * 60 * 1_000;
/** When a member starts one more, the one that was used least recently ends. */
export const SESSIONS_PER_MEMBER_MAX = 20;
/** How long after a sign-in with a password its member may add the passkey that the desk requires. */
export const ADD_PASSKEY_MS_MAX = 10 * 60 * 1_000;

/** How a session begins. */
export interface Beginning {
  /** The passkey that it begins with; null for a password. */
  readonly passkeyId: string | null;
  /** The `User-Agent` in short. */
  readonly browser: string;
  /** Of the client. */
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
  /** What the member's was when the session began: no clock tells what came first within a millisecond. */
  readonly signedOutAt: number;
  seenAt: number;
}

/** Null for a member who was removed, and for a passkey that was. */
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
    beginning: Beginning,
    now: number,
  ): Promise<string> {
    const before = this.#sessionsOf(memberId);
    const held = new Set(await this.list(memberId, now));
    // No `await` from here on: of two sign-ins at once, neither may count without the other's session.
    this.#endAll((session) => isOver(session, now));
    this.#endAll((session) => before.includes(session) && !held.has(session));
    const surplus = this.#sessionsOf(memberId).slice(SESSIONS_PER_MEMBER_MAX - 1);
    this.#endAll((session) => surplus.includes(session));
    const token = randomToken();
    const name = hash(token);
    const id = name.slice(0, 16);
    const { passkeyId, browser, address } = beginning;
    const times = { startedAt: now, seenAt: now };
    const owner = { name, id, memberId, signedOutAt };
    this.#sessions.set(name, { ...owner, passkeyId, browser, address, ...times });
    return token;
  }

  /** Null for a token that is unknown, or whose session does not hold any more. */
  async find(token: string, now: number): Promise<SignedIn | null> {
    const name = hash(token);
    const session = this.#sessions.get(name);
    if (session === undefined) return null;
    const member = await this.#memberOf(session, now);
    if (member === null) {
      this.#sessions.delete(name);
      return null;
    }
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

  /** Ends one of the member's own, by its id, and returns it; null for an unknown one. */
  endOne(memberId: string, id: string): Session | null {
    const ended = this.#sessionsOf(memberId).find((session) => session.id === id) ?? null;
    this.#endAll((session) => session === ended);
    return ended;
  }

  /** The member's, the one that was used last first. */
  async list(memberId: string, now: number): Promise<Session[]> {
    const sessions = this.#sessionsOf(memberId);
    const members = await Promise.all(sessions.map((session) => this.#memberOf(session, now)));
    return sessions.filter((_, index) => members[index] !== null);
  }

  /** Whether they hold or not; the one that was used last first. */
  #sessionsOf(memberId: string): Kept[] {
    return [...this.#sessions.values()]
      .filter((session) => session.memberId === memberId)
      .toSorted((one, other) => other.seenAt - one.seenAt);
  }

  /**
   * Null for a session that is over, whose member was removed or signed out everywhere, whose passkey was
   * removed, or that began with a password where only a passkey will do.
   */
  async #memberOf(session: Kept, now: number): Promise<Account | null> {
    if (isOver(session, now)) return null;
    const member = await this.#findMember(session.memberId, session.passkeyId);
    // While the member was read, another request may have ended the session.
    if (this.#sessions.get(session.name) !== session) return null;
    if (member?.signed_out_at !== session.signedOutAt) return null;
    return isTooWeak(session, member, now) ? null : member;
  }

  #endAll(isMeant: (session: Kept) => boolean): void {
    for (const [name, session] of this.#sessions) {
      if (isMeant(session)) this.#sessions.delete(name);
    }
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

/** 256 random bits, base64url. */
export function randomToken(): string {
  return Buffer.from(crypto.getRandomValues(new Uint8Array(32))).toString("base64url");
}

function hash(token: string): string {
  return new Bun.CryptoHasher("sha256").update(token).digest("hex");
}

/** Who is signed in. The storage has only hashes of the tokens, and sessions outlive a restart. */
import { type Account, generateToken, type MemberRole } from "../../../domain/member/member.ts";
import type { Session } from "../../../domain/member/session.ts";
import type { Awaitable } from "../../../domain/storage/awaitable.ts";
import type { SessionStore } from "../../../domain/storage/sessions.ts";

/** A session ends after this time without a request (OWASP ASVS 7.3.1). */
export const SESSION_IDLE_MS_MAX = 12 * 60 * 60 * 1_000;
/** A session ends after this time, however busy it is (ASVS 7.3.2). */
export const SESSION_AGE_MS_MAX = 7 * 24 * 60 * 60 * 1_000;
/** When a member starts one more, the one that was used least recently ends. */
export const SESSIONS_PER_MEMBER_MAX = 20;
/** How long after a sign-in with a password its member may add the passkey that the desk requires. */
export const ADD_PASSKEY_MS_MAX = 10 * 60 * 1_000;

/** A use that is this much later than the last written one is written. */
const USE_INTERVAL_MS = 60_000;

/** Returns null if the member or the passkey was removed. */
export type FindMember = (memberId: string, passkeyId: string | null) => Awaitable<Account | null>;

/** Who is signed in. */
export interface SignedIn {
  readonly memberId: string;
  readonly email: string;
  readonly role: MemberRole;
  readonly desk: string;
  readonly deskId: number;
  readonly session: Session;
  /** See `Account`: what it was when the session began. */
  readonly signedOutAt: number;
  /** The desk requires passkeys and the session began with a password: only `/passkey` is open. */
  readonly mustAddPasskey: boolean;
}

export class Sessions {
  readonly #store: SessionStore;
  readonly #findMember: FindMember;

  constructor(store: SessionStore, findMember: FindMember) {
    this.#store = store;
    this.#findMember = findMember;
  }

  /**
   * Returns the token for the cookie. `member`: as they were when they proved who they are. If they were
   * signed out everywhere since then, the session does not hold.
   */
  async start(
    { id: memberId, signed_out_at: signedOutAt }: Pick<Account, "id" | "signed_out_at">,
    beginning: Pick<Session, "passkeyId" | "browser" | "address">,
    now: number,
  ): Promise<string> {
    await this.#store.removeUnused(now, SESSION_IDLE_MS_MAX);
    // Ends the member's sessions that no longer hold: they must not push out one that does.
    await this.list(memberId, now);
    const token = generateToken();
    const [id, startedAt, seenAt] = [hash(token), now, now];
    const session = { id, memberId, signedOutAt, startedAt, seenAt, ...beginning };
    await this.#store.add(session, SESSIONS_PER_MEMBER_MAX);
    return token;
  }

  /** Null for a token that is unknown, or whose session does not hold any more. */
  async find(token: string, now: number): Promise<SignedIn | null> {
    const session = await this.#store.find(hash(token));
    const member = session === null ? null : await this.#memberOf(session, now);
    if (session === null || member === null) return null;
    if (Math.abs(now - session.seenAt) >= USE_INTERVAL_MS) {
      await this.#store.recordUse(session.id, now);
    }
    const { id, email, role, desk, desk_id: deskId } = member;
    const mustAddPasskey = member.passkeys_required && session.passkeyId === null;
    const { signedOutAt } = session;
    return { memberId: id, email, role, desk, deskId, session, signedOutAt, mustAddPasskey };
  }

  /** Whether the token's session holds. Unlike {@link find}, it does not count as a use of the session. */
  async holds(token: string, now: number): Promise<boolean> {
    const session = await this.#store.find(hash(token));
    return session !== null && (await this.#memberOf(session, now)) !== null;
  }

  async end(token: string): Promise<void> {
    await this.#store.remove(hash(token));
  }

  /** Ends one of the member's sessions by its id, and returns it; null if there is none. */
  async endOne(memberId: string, id: string): Promise<Session | null> {
    const session = await this.#store.find(id);
    if (session?.memberId !== memberId) return null;
    return (await this.#store.remove(id)) ? session : null;
  }

  /** Returns the member's sessions that hold, the last used first. */
  async list(memberId: string, now: number): Promise<Session[]> {
    const sessions = await this.#store.list(memberId);
    const members = await Promise.all(sessions.map((session) => this.#memberOf(session, now)));
    return sessions.filter((_, index) => members[index] !== null);
  }

  /**
   * Ends a session and returns null if it is over, its member was removed or signed out everywhere, its
   * passkey was removed, or it began with a password where only a passkey will do.
   */
  async #memberOf(session: Session, now: number): Promise<Account | null> {
    const { id, memberId, passkeyId, signedOutAt } = session;
    const member = isOver(session, now) ? null : await this.#findMember(memberId, passkeyId);
    const holds = member?.signed_out_at === signedOutAt && !isTooWeak(session, member, now);
    if (!holds) await this.#store.discard(id);
    return holds ? member : null;
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

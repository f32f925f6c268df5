/** The people who use the console, and their passkeys. */
import type { DeskRef } from "../desk/desk.ts";
import type {
  Account,
  Invitation,
  MadeLink,
  Member,
  MemberRole,
  NewPasskey,
  Passkey,
  PasskeyCredential,
  SignInAccount,
  SignInMeans,
} from "../member/member.ts";
import type { Author, MemberAuthor } from "./author.ts";
import type { Awaitable } from "./awaitable.ts";

/** The people who use the console. Every change is in the audit. */
export interface Members {
  /**
   * Creates the member, or a new link for one who has not joined. Refused when the desk is full. Without a role, the
   * member is a manager, or what they were invited as before.
   */
  invite(
    desk: DeskRef,
    email: string,
    by: Author,
    options?: { readonly role?: MemberRole | undefined },
  ): Awaitable<MadeLink>;
  /**
   * Takes effect with the member's next request. Members cannot change their own role, and the only manager who has
   * joined stays one, so that a desk keeps a manager.
   */
  setRole(
    desk: DeskRef,
    email: string,
    role: MemberRole,
    by: Author,
  ): Awaitable<{ member: Member; changed: boolean }>;
  /**
   * Ends the member's sessions and makes a link for a new password or passkey. The present ones work
   * until the link is used; with `lock` they stop working at once. By an administrator.
   */
  reset(desk: string, email: string, options?: { lock?: boolean }): Awaitable<MadeLink>;
  /**
   * Ends the member's sessions and links; the address may be invited again, to any desk. Members cannot
   * remove themselves or the only manager, so that a desk keeps one; an administrator can.
   */
  remove(desk: DeskRef, email: string, by: Author): Awaitable<Member>;
  /** Members who were not removed, by address. */
  list(desk: DeskRef): Awaitable<Member[]>;
  /** Returns null for a link that is unknown, expired or used, or whose member {@link find} does not find. */
  findInvitation(token: string): Awaitable<Invitation | null>;
  /**
   * Uses the link: these means replace the password and every passkey, and all sessions end. Returns null if
   * the link does not work: of two at the same moment, one succeeds.
   */
  spendLink(token: string, means: SignInMeans, client: string | null): Awaitable<Account | null>;
  /** Ends all sessions: start a new one with the account that it returns. */
  setPassword(by: MemberAuthor, passwordHash: string): Awaitable<Account>;
  /** Like {@link setPassword}. */
  signOutEverywhere(by: MemberAuthor): Awaitable<Account>;
  /** Takes any text. Returns null for an unknown address. Also finds members of an archived desk. */
  findForSignIn(email: string): Awaitable<SignInAccount | null>;
  /** The hash of the member's password, even if it is locked; null without one. */
  passwordHash(memberId: string): Awaitable<string | null>;
  /** Returns null for a removed member, and while the desk is archived. */
  find(memberId: string): Awaitable<Account | null>;
}

/** WebAuthn credentials. A removed one is never found again. */
export interface Passkeys {
  /**
   * Throws a `UserError` if the credential is registered already, with any member. `onlyIfFirst`: also if
   * the member has a passkey, so that two sessions with the password cannot both add the first one.
   */
  add(
    by: MemberAuthor,
    passkey: NewPasskey,
    options?: { readonly onlyIfFirst?: boolean },
  ): Awaitable<void>;
  /** The member's, oldest first. */
  list(memberId: string): Awaitable<Passkey[]>;
  /** Returns null for a removed passkey and for a removed member's. */
  find(id: string): Awaitable<PasskeyCredential | null>;
  /**
   * Records a use whose signature was checked. `regressed`: the counter decreased, so the passkey
   * may have been copied, and nothing was recorded. Two uses at once cannot both pass with one counter.
   */
  recordUse(id: string, counter: number): Awaitable<"recorded" | "regressed" | "unknown">;
  /** Why {@link remove} would refuse, in a sentence; null if it would not. */
  removalObstacle(memberId: string, id: string): Awaitable<string | null>;
  remove(by: MemberAuthor, id: string): Awaitable<void>;
}

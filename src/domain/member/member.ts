/** The people who may use the console for a desk, and the one-time links with which they join. */
import { UserError } from "../../lib/errors.ts";
import { HIDDEN_CHARACTER } from "../../lib/text/hidden.ts";
import { refuseKeys } from "../desk/note.ts";
import { DAY_MS } from "../../lib/text/time.ts";

export const memberRoles = ["manager", "viewer"] as const;
/** A viewer sees everything of the desk, and changes only their own account. */
export type MemberRole = (typeof memberRoles)[number];

/** A member without secrets. Times are epoch milliseconds, UTC. */
export interface Member {
  readonly id: string;
  readonly desk: string;
  readonly email: string;
  readonly role: MemberRole;
  readonly created_at: number;
  /** When the first password or passkey was set; null while the invitation is open. */
  readonly joined_at: number | null;
  readonly removed_at: number | null;
  /** When they last signed in. */
  readonly signed_in_at: number | null;
  readonly has_password: boolean;
  readonly passkeys: number;
  /** When the open one-time link expires; null without one. */
  readonly link_expires_at: number | null;
}

/** A member, with what sessions need. */
export interface Account extends Member {
  readonly desk_id: number;
  /** The desk's members sign in with passkeys only. */
  readonly passkeys_required: boolean;
  /** Epoch milliseconds; rises with each sign-out. A session is valid while it is unchanged. */
  readonly signed_out_at: number;
}

export interface SignInAccount extends Account {
  /** PHC string; null for members with passkeys only. Never leaves the server. */
  readonly password_hash: string | null;
  /** Nobody may sign in while it is set. Epoch milliseconds. */
  readonly desk_archived_at: number | null;
}

/** What a one-time link is for: the first password or passkey (`join`), or a new one (`reset`). */
export type LinkKind = "join" | "reset";

/** A WebAuthn credential, as its member sees it. */
export interface Passkey {
  /** The credential's id, base64url. */
  readonly id: string;
  readonly name: string;
  readonly created_at: number;
  readonly last_used_at: number | null;
}

/** A passkey with what checks its signatures. */
export interface PasskeyCredential extends Passkey {
  readonly member_id: string;
  /** The member's; it may be archived. */
  readonly desk_id: number;
  /** COSE. */
  readonly public_key: Uint8Array<ArrayBuffer>;
  readonly counter: number;
  readonly transports: readonly string[];
}

export type NewPasskey = Pick<
  PasskeyCredential,
  "id" | "name" | "public_key" | "counter" | "transports"
>;

/** A new password or passkey. */
export type SignInMeans =
  | { readonly passwordHash: string; readonly passkey?: null }
  | { readonly passwordHash?: null; readonly passkey: NewPasskey };

/** A new link: the only time that its token is known. */
export interface MadeLink {
  readonly token: string;
  readonly member: Member;
  readonly expires_at: number;
  /** The member had an open link, which no longer works. */
  readonly replaces_link: boolean;
}

export interface Invitation {
  readonly member: Member;
  /** The member must choose a passkey. */
  readonly passkeys_required: boolean;
  readonly kind: LinkKind;
  readonly expires_at: number;
}

/** How many members a desk can have, open invitations included. */
export const MEMBERS_MAX = 100;

/** How long a one-time link works. */
export const LINK_LIFETIME_MS = DAY_MS;

export const EMAIL_CHARACTERS_MAX = 254;

/** Returns an address as stored, looked up and counted. Phones append a space to what they suggest. */
export function normalizeEmail(text: string): string {
  return text.trim().normalize("NFC").toLowerCase();
}

/**
 * Returns the address as {@link normalizeEmail} does. We send no mail, so the rules only keep it readable.
 * Throws {@link UserError}.
 */
export function checkEmail(text: string): string {
  const email = normalizeEmail(text);
  const length = Array.from(email).length;
  const isPlain = /^[^@\p{C}\p{Z}]+@[^@\p{C}\p{Z}]+$/u.test(email) && !HIDDEN_CHARACTER.test(email);
  if (length > EMAIL_CHARACTERS_MAX || !isPlain) {
    throw new UserError(
      `An email address has 3 to ${EMAIL_CHARACTERS_MAX} characters, one @, and no spaces or invisible characters: type it like alice@example.com.`,
    );
  }
  refuseKeys(email, "An email address");
  return email;
}

/** 256 random bits as base64url. */
export function generateToken(): string {
  return Buffer.from(crypto.getRandomValues(new Uint8Array(32))).toString("base64url");
}

export function isWellFormedToken(text: string): boolean {
  return /^[A-Za-z0-9_-]{43}$/.test(text);
}

/** SHA-256, 32 bytes. With 256 random bits a slow hash adds nothing. */
export function hashToken(token: string): Uint8Array {
  return Bun.SHA256.hash(token, new Uint8Array(32)) as Uint8Array;
}

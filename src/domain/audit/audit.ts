/** The audit: who did what to a desk, its keys and its members. */

import type { DeskRef } from "../desk/desk.ts";

/** Action → the verb between the actor and the object. */
export const auditPhrases = {
  "desk.created": "created the desk",
  "desk.passkeys_required": "required passkeys of the desk's members",
  "desk.passkeys_optional": "allowed the desk's members passwords",
  "desk.sent_kept": "let the desk keep what rejected requests sent",
  "desk.sent_forgotten": "deleted what rejected requests sent, and keeps none from now on",
  "desk.keys_limited": "set the limit on active keys",
  "desk.notices_added": "added a place for notices",
  "desk.notices_removed": "removed a place for notices",
  "desk.silence_set": "set that silence is noticed",
  "desk.renamed": "renamed the desk",
  "desk.archived": "archived the desk",
  "desk.unarchived": "brought the desk back from the archive",
  "key.created": "created the key",
  "key.rotated": "rotated the key",
  "key.relabelled": "changed the label of the key",
  "key.revoked": "revoked the key",
  "member.invited": "invited",
  "member.role_changed": "changed the role of",
  "member.joined": "joined",
  "member.reset": "created a link for a new password for",
  "member.removed": "removed",
  "member.signed_in": "signed in",
  "member.sign_in_failed": "failed to sign in as",
  "member.confirmation_failed": "failed to confirm a change",
  "member.password_set": "set a password",
  "member.password_changed": "changed the password",
  "member.passkey_added": "added a passkey",
  "member.passkey_removed": "removed a passkey",
  "member.session_ended": "ended a session",
  "member.signed_out_everywhere": "signed out everywhere",
} as const;

/** Whose detail continues the sentence, such as "signed in with a password". */
const continued: ReadonlySet<AuditAction> = new Set<AuditAction>([
  "desk.keys_limited",
  "member.invited",
  "member.role_changed",
  "desk.silence_set",
  "member.joined",
  "member.signed_in",
  "member.sign_in_failed",
]);

/** What stands before an entry's detail. */
export function beforeDetail(action: AuditAction): string {
  return continued.has(action) ? " " : ": ";
}

export type AuditAction = keyof typeof auditPhrases;

/** What entries can be filtered by. */
export const auditTopics = ["keys", "members", "sign-ins", "desk"] as const;
export type AuditTopic = (typeof auditTopics)[number];

const signInActions: ReadonlySet<string> = new Set<AuditAction>([
  "member.signed_in",
  "member.sign_in_failed",
  "member.confirmation_failed",
  "member.session_ended",
  "member.signed_out_everywhere",
]);

export function actionsAbout(topic: AuditTopic): AuditAction[] {
  return (Object.keys(auditPhrases) as AuditAction[]).filter((action) => {
    if (signInActions.has(action)) return topic === "sign-ins";
    return topic.startsWith(action.split(".")[0] ?? "");
  });
}

/** In {@link AuditPage.by}: administrators. No member has this address. */
export const BY_ADMIN = "admin";

/** The storage adds the time and the administrator's name. */
export interface AuditEntry {
  /** Null: of no desk, as a read key for all desks. */
  readonly deskId: number | null;
  /** The member who did it; null: an administrator on the command line, or someone unknown. */
  readonly actor: string | null;
  /** The IP address that it was asked from; null: the command line. */
  readonly client: string | null;
  readonly action: AuditAction;
  readonly keyId?: string;
  /** The member it was done to. */
  readonly subjectId?: string;
  /** More for the reader, in words. Nothing secret. */
  readonly detail?: string | null;
}

/** An entry as read, with names instead of ids. */
export interface AuditRecord {
  /** Rises in the order of the actions. */
  readonly id: number;
  /** Epoch milliseconds, UTC. */
  readonly at: number;
  /** Null: see {@link AuditEntry.deskId}. */
  readonly desk: string | null;
  readonly action: AuditAction;
  /** The email address of the member who did it; null as in {@link AuditEntry}. */
  readonly actor: string | null;
  readonly key_id: string | null;
  readonly key_label: string | null;
  readonly key_last4: string | null;
  /** The email address of the member it was done to. */
  readonly subject: string | null;
  readonly detail: string | null;
  /** The IP address of the client; null: the command line. */
  readonly client: string | null;
  /** Who the administrator is in the operating system, such as `root (sudo: alice)`; null for others. */
  readonly os_user: string | null;
}

export interface AuditPage {
  /** Only this desk; null: all desks. */
  readonly desk: DeskRef | null;
  /** Only entries about the key with this id. */
  readonly key?: string | null;
  readonly about?: AuditTopic | null;
  /** Only what was done by the member with this address, or by administrators ({@link BY_ADMIN}). */
  readonly by?: string | null;
  /** Only entries older than the one with this id. */
  readonly before?: number | null;
  readonly limit: number;
}

/** Ends the detail of a sign-in. Neither a password nor a passkey's name, which is quoted, can end like this. */
export const NEW_BROWSER = ", in a browser not seen before";

export function isFromNewBrowser({ action, detail }: AuditRecord): boolean {
  return action === "member.signed_in" && detail?.endsWith(NEW_BROWSER) === true;
}

/** Begins the detail of a key that a rotation made. */
export const SUCCESSOR_OF = "successor of ";

export function isSuccessor({ action, detail }: AuditRecord): boolean {
  return action === "key.created" && detail?.startsWith(SUCCESSOR_OF) === true;
}

/** Names the actor, for people. For example `admin alice`. */
export function auditActor({ action, actor, os_user }: AuditRecord): string {
  if (actor !== null) return actor;
  if (action === "member.sign_in_failed") return "somebody";
  return os_user === null ? "admin" : `admin ${os_user}`;
}

/** Describes the action, for people; follows the actor. For example `revoked the key "bot-7" (…4f2a)`. */
export function describeAudit(record: AuditRecord): string {
  const label = record.key_label === null ? "" : ` "${record.key_label}"`;
  const key = record.key_id === null ? "" : `${label} (…${record.key_last4})`;
  const isAnother = record.subject !== null && record.subject !== record.actor;
  const subject = isAnother ? ` ${record.subject}` : "";
  const detail = record.detail === null ? "" : `${beforeDetail(record.action)}${record.detail}`;
  return `${auditPhrases[record.action]}${key}${subject}${detail}`;
}

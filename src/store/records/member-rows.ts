/** How members are read, and their one-time links, of whose tokens only the SHA-256 is stored. */
import { ulid } from "ulid";
import type { AuditAction } from "../../domain/audit/audit.ts";
import {
  type Account,
  generateToken,
  hashToken,
  isWellFormedToken,
  LINK_LIFETIME_MS,
  type Member,
  type SignInAccount,
} from "../../domain/member/member.ts";
import type { Author } from "../../domain/storage/author.ts";
import { NotFoundError } from "../../lib/errors.ts";
import { addEntry } from "./audit.ts";
import { greaterOf } from "./dialect.ts";
import type { Reader, Tx } from "./sql.ts";

export type MemberRow = Omit<SignInAccount, "has_password" | "passkeys_required"> & {
  readonly passkeys_required: number;
};

/** Marks the hash of a locked password, as in `/etc/shadow`. */
export const LOCKED = /^!/;

/** Members who were not removed, those of archived desks included. `condition`: of `$2`, the value. */
export function selectMembers(
  sql: Reader,
  condition: string,
  value: string | number,
): Promise<MemberRow[]> {
  return sql.all(
    `SELECT members.id, desks.name AS desk, members.desk_id, members.email, members.role,
       members.created_at, members.joined_at, members.removed_at, members.signed_out_at, members.password_hash,
       desks.passkeys_required, desks.archived_at AS desk_archived_at,
       (SELECT max(at) FROM audit
        WHERE member_id = members.id AND action = 'member.signed_in') AS signed_in_at,
       (SELECT count(*) FROM passkeys
        WHERE member_id = members.id AND removed_at IS NULL) AS passkeys,
       (SELECT max(expires_at) FROM invitations
        WHERE member_id = members.id AND spent_at IS NULL AND expires_at > $1) AS link_expires_at
     FROM members JOIN desks ON desks.id = members.desk_id
     WHERE members.removed_at IS NULL AND ${condition}`,
    sql.now,
    value,
  );
}

export async function findByEmail(sql: Reader, email: string): Promise<MemberRow | null> {
  const [row] = await selectMembers(sql, "members.email = $2", email);
  return row ?? null;
}

/** Returns null for a removed member, and while the desk is archived. */
export async function findAccount(sql: Reader, id: string): Promise<Account | null> {
  const [row] = await selectMembers(sql, "members.id = $2 AND desks.archived_at IS NULL", id);
  return row === undefined ? null : toAccount(row);
}

/** Throws `NotFoundError` for a removed member. */
export async function getAccount(sql: Reader, id: string): Promise<Account> {
  const [row] = await selectMembers(sql, "members.id = $2", id);
  if (row === undefined) throw new NotFoundError("There is no such member.");
  return toAccount(row);
}

/** If the desk requires passkeys, a member's password stops working once they have one. */
export function workingPassword({
  password_hash,
  passkeys_required,
  passkeys,
}: MemberRow): string | null {
  if (password_hash !== null && LOCKED.test(password_hash)) return null;
  return passkeys_required === 1 && passkeys > 0 ? null : password_hash;
}

export function toAccount(row: MemberRow): Account {
  const { password_hash: _hash, desk_archived_at: _archived, ...account } = row;
  return {
    ...account,
    has_password: workingPassword(row) !== null,
    passkeys_required: row.passkeys_required === 1,
  };
}

export function toMember(account: Account): Member {
  const { desk_id: _desk, passkeys_required: _required, signed_out_at: _at, ...member } = account;
  return member;
}

/** Of one member, or all of a desk. Always increases `signed_out_at`, also after the clock was set back. */
export async function endSessions(
  tx: Tx,
  column: "id" | "desk_id",
  value: string | number,
): Promise<void> {
  const at = greaterOf("$1", "signed_out_at + 1");
  await tx.run(`UPDATE members SET signed_out_at = ${at} WHERE ${column} = $2`, tx.now, value);
}

interface OpenLink {
  readonly member_id: string;
  readonly expires_at: number;
}

/** Also revokes the member's earlier ones. */
export async function insertLink(
  tx: Tx,
  memberId: string,
): Promise<{ token: string; expires_at: number }> {
  await spendLinks(tx, memberId);
  const token = generateToken();
  const expires_at = tx.now + LINK_LIFETIME_MS;
  await tx.run(
    `INSERT INTO invitations (id, token_hash, member_id, created_at, expires_at)
     VALUES ($1, $2, $3, $4, $5)`,
    ulid(tx.now),
    hashToken(token),
    memberId,
    tx.now,
    expires_at,
  );
  return { token, expires_at };
}

/** Returns null for a link that is unknown, expired or used. */
export async function findLink(sql: Reader, token: string): Promise<OpenLink | null> {
  if (!isWellFormedToken(token)) return null;
  return sql.get(
    `SELECT member_id, expires_at FROM invitations
     WHERE token_hash = $1 AND expires_at > $2 AND spent_at IS NULL`,
    hashToken(token),
    sql.now,
  );
}

export async function spendLinks(tx: Tx, memberId: string): Promise<void> {
  const spend = "UPDATE invitations SET spent_at = $1 WHERE member_id = $2 AND spent_at IS NULL";
  await tx.run(spend, tx.now, memberId);
}

/** `by`: who did it to the member. */
export function addMemberEntry(
  tx: Tx,
  by: Author,
  { id: subjectId, desk_id: deskId }: Account,
  action: AuditAction,
  detail?: string,
): Promise<void> {
  return addEntry(tx, by, { deskId, action, subjectId, detail: detail ?? null });
}

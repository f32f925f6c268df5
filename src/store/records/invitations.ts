/** One-time links, of whose tokens only the SHA-256 is stored. */
import { ulid } from "ulid";
import {
  generateToken,
  hashToken,
  isWellFormedToken,
  LINK_LIFETIME_MS,
} from "../../domain/member/member.ts";
import type { Reader, Tx } from "./sql.ts";

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

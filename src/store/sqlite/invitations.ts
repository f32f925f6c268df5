/** One-time links in SQLite, which has only the SHA-256 of their tokens. */
import type { Database } from "bun:sqlite";
import { ulid } from "ulid";
import {
  generateToken,
  hashToken,
  isWellFormedToken,
  LINK_LIFETIME_MS,
} from "../../domain/member.ts";

interface OpenLink {
  readonly member_id: string;
  readonly expires_at: number;
}

/** Also revokes the member's earlier ones. */
export function insertLink(
  db: Database,
  memberId: string,
  now: number,
): { token: string; expires_at: number } {
  spendLinks(db, memberId, now);
  const token = generateToken();
  const expires_at = now + LINK_LIFETIME_MS;
  db.query(
    `INSERT INTO invitations (id, token_hash, member_id, created_at, expires_at)
     VALUES (?, ?, ?, ?, ?)`,
  ).run(ulid(now), hashToken(token), memberId, now, expires_at);
  return { token, expires_at };
}

/** Returns null for a link that is unknown, expired or used. */
export function findLink(db: Database, token: string, now: number): OpenLink | null {
  if (!isWellFormedToken(token)) return null;
  return db
    .query<OpenLink, [Uint8Array, number]>(
      `SELECT member_id, expires_at FROM invitations
       WHERE token_hash = ? AND expires_at > ? AND spent_at IS NULL`,
    )
    .get(hashToken(token), now);
}

export function spendLinks(db: Database, memberId: string, now: number): void {
  db.query("UPDATE invitations SET spent_at = ? WHERE member_id = ? AND spent_at IS NULL").run(
    now,
    memberId,
  );
}

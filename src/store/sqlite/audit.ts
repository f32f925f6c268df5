/** The audit in SQLite: each entry is written in the transaction of its change. */
import type { Database } from "bun:sqlite";
import type { AuditEntry, AuditPage, AuditRecord } from "../../domain/audit.ts";
import { NotFoundError, SignedOutError } from "../../domain/errors.ts";
import { redactKeys } from "../../domain/key.ts";
import type { Audit } from "../../domain/storage.ts";
import { getDesk } from "./desks.ts";
import { inTransaction } from "./transaction.ts";

/**
 * Call it inside the transaction of the change. Throws, and so undoes the change, if the actor, the key or
 * the subject is of another desk, or the actor was removed or signed out meanwhile: the last line of
 * defence between desks. `signedOutAt`: see `Author`.
 */
export function appendAudit(
  db: Database,
  entry: AuditEntry & { readonly signedOutAt?: number | undefined },
  now: number,
): void {
  if (entry.actor !== null && entry.signedOutAt !== undefined) {
    requireSession(db, entry.actor, entry.signedOutAt);
  }
  const { changes } = db
    .query(
      `INSERT INTO audit (at, desk_id, member_id, action, key_id, subject_id, detail, client)
       SELECT $at, $desk, $actor, $action, $key, $subject, $detail, $client
       WHERE ($actor IS NULL OR EXISTS
           (SELECT 1 FROM members WHERE id = $actor AND desk_id = $desk AND removed_at IS NULL))
         AND ($subject IS NULL OR EXISTS
           (SELECT 1 FROM members WHERE id = $subject AND desk_id = $desk))
         AND ($key IS NULL OR EXISTS
           (SELECT 1 FROM api_keys WHERE id = $key AND desk_id = $desk))`,
    )
    .run({
      at: now,
      desk: entry.deskId,
      actor: entry.actor,
      action: entry.action,
      key: entry.keyId ?? null,
      subject: entry.subjectId ?? null,
      detail: entry.detail == null ? null : redactKeys(entry.detail),
      client: entry.client,
    });
  if (changes === 0) throw new NotFoundError("There is no such member of this desk.");
}

function requireSession(db: Database, memberId: string, signedOutAt: number): void {
  const row = db
    .query<{ signed_out_at: number }, [string]>("SELECT signed_out_at FROM members WHERE id = ?")
    .get(memberId);
  if (row !== null && row.signed_out_at !== signedOutAt) throw new SignedOutError();
}

export class SqliteAudit implements Audit {
  readonly #db: Database;
  readonly #now: () => number;

  constructor(db: Database, now: () => number = Date.now) {
    this.#db = db;
    this.#now = now;
  }

  append(entry: AuditEntry): void {
    inTransaction(this.#db, () => appendAudit(this.#db, entry, this.#now()));
  }

  list({ desk, key = null, before = null, limit }: AuditPage): AuditRecord[] {
    const deskId = desk === null ? null : getDesk(this.#db, desk).id;
    const conditions = [
      // One key has few entries: the plus makes SQLite use the index of the key.
      ...(deskId === null ? [] : [`${key === null ? "" : "+"}audit.desk_id = $desk`]),
      ...(key === null ? [] : ["audit.key_id = $key"]),
      ...(before === null ? [] : ["audit.id < $before"]),
    ];
    return this.#db
      .query<AuditRecord, Record<string, number | string>>(
        `SELECT audit.id, audit.at, desks.name AS desk, audit.action, actors.email AS actor,
           audit.key_id, api_keys.label AS key_label, api_keys.last4 AS key_last4,
           subjects.email AS subject, audit.detail, audit.client
         FROM audit
         JOIN desks ON desks.id = audit.desk_id
         LEFT JOIN members AS actors ON actors.id = audit.member_id
         LEFT JOIN members AS subjects ON subjects.id = audit.subject_id
         LEFT JOIN api_keys ON api_keys.id = audit.key_id
         ${conditions.length === 0 ? "" : `WHERE ${conditions.join(" AND ")}`}
         ORDER BY audit.id DESC LIMIT $limit`,
      )
      .all({
        limit,
        ...(deskId === null ? {} : { desk: deskId }),
        ...(key === null ? {} : { key }),
        ...(before === null ? {} : { before }),
      });
  }

  creatorsOf(desk: string, keyIds: readonly string[]): ReadonlyMap<string, string | null> {
    const rows = this.#db
      .query<{ key_id: string; email: string | null }, Record<string, number | string>>(
        `SELECT audit.key_id, members.email FROM json_each($keys) AS wanted
         CROSS JOIN audit ON audit.key_id = wanted.value
         LEFT JOIN members ON members.id = audit.member_id
         WHERE +audit.desk_id = $desk AND audit.action = 'key.created'`,
      )
      .all({ desk: getDesk(this.#db, desk).id, keys: JSON.stringify(keyIds) });
    return new Map(rows.map(({ key_id, email }) => [key_id, email]));
  }
}

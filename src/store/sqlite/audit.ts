/** The audit in SQLite: each row is written in the transaction of the change that it tells of. */
import type { Database } from "bun:sqlite";
import type { AuditEntry, AuditPage, AuditRecord } from "../../domain/audit.ts";
import { clientAddress } from "../../domain/client.ts";
import { NotFoundError } from "../../domain/errors.ts";
import { redactKeys } from "../../domain/key.ts";
import { getDesk } from "./desks.ts";
import { inTransaction } from "./transaction.ts";

/**
 * To be called inside the transaction of the change. Throws, and so undoes the change, where the
 * actor, the key or the subject is not of this desk, or the actor was removed meanwhile: the last line
 * of defence between desks.
 */
export function appendAudit(db: Database, entry: AuditEntry, now: number): void {
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
      client: clientAddress(),
    });
  if (changes === 0) throw new NotFoundError("There is no such member of this desk.");
}

export class SqliteAudit {
  readonly #db: Database;
  readonly #now: () => number;

  constructor(db: Database, now: () => number = Date.now) {
    this.#db = db;
    this.#now = now;
  }

  /** For what changes nothing else, such as a sign-in: a change writes its own entry. */
  append(entry: AuditEntry): void {
    inTransaction(this.#db, () => appendAudit(this.#db, entry, this.#now()));
  }

  /** Newest first. */
  list({ desk, key = null, before = null, limit }: AuditPage): AuditRecord[] {
    const deskId = desk === null ? null : getDesk(this.#db, desk).id;
    const conditions = [
      // The entries of one key are few: with the plus they are found by the key alone.
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

/** Reads the audit, and appends entries that belong to no change; `records.ts` appends the others. */
import {
  actionsAbout,
  type AuditEntry,
  type AuditPage,
  type AuditRecord,
  auditPhrases,
  BY_ADMIN,
} from "../../domain/audit.ts";
import type { Audit } from "../../domain/storage.ts";
import { Records } from "./records.ts";

/** See `AuditEntry.actor`: strangers have an address. */
const IS_ADMINS = "audit.member_id IS NULL AND audit.client IS NULL";

/**
 * The latest entries of each action, of which the page has the latest: so many are looked at, however long
 * the audit is. `by`: see `AuditPage`; strangers only fail to sign in, and administrators never do.
 */
function latestOfEach(by: string | null): string {
  const [actors, isBy] =
    by === null
      ? ["", ""]
      : by === BY_ADMIN
        ? ["", "AND one.member_id IS NULL AND one.action <> 'member.sign_in_failed'"]
        : [
            "CROSS JOIN members AS actor ON actor.desk_id = $desk AND actor.email = $by",
            "AND one.member_id = actor.id",
          ];
  return `audit.id IN (SELECT latest.id FROM json_each($actions) AS wanted ${actors}
    CROSS JOIN audit AS latest ON latest.id IN
      (SELECT one.id FROM audit AS one
       WHERE one.desk_id = $desk AND one.action = wanted.value ${isBy} AND one.id < $before
       ORDER BY one.id DESC LIMIT $limit))`;
}

export class SqliteAudit extends Records implements Audit {
  append({ actor: memberId, client, ...entry }: AuditEntry): void {
    this.change(() => this.audit({ memberId, client }, entry));
  }

  list(page: AuditPage): AuditRecord[] {
    const { key = null, about = null, by = null, before, limit } = page;
    const desk = page.desk === null ? null : this.getDesk(page.desk).id;
    const actions = about === null ? Object.keys(auditPhrases) : actionsAbout(about);
    const isFiltered = about !== null || by !== null;
    const conditions = ["audit.id < $before"];
    if (desk !== null) {
      // The plus makes SQLite use another index than the desk's: one key has few entries.
      conditions.push(`${key === null && !isFiltered ? "" : "+"}audit.desk_id = $desk`);
      if (key === null && isFiltered) conditions.push(latestOfEach(by));
    }
    if (key !== null) conditions.push("audit.key_id = $key");
    if (about !== null) conditions.push("audit.action IN (SELECT value FROM json_each($actions))");
    if (by !== null) conditions.push(by === BY_ADMIN ? IS_ADMINS : "actors.email = $by");
    return this.db
      .query<AuditRecord, Record<string, number | string | null>>(
        `SELECT audit.id, audit.at, desks.name AS desk, audit.action, actors.email AS actor,
           audit.key_id, api_keys.label AS key_label, api_keys.last4 AS key_last4,
           subjects.email AS subject, audit.detail, audit.client, audit.os_user
         FROM audit
         LEFT JOIN desks ON desks.id = audit.desk_id
         LEFT JOIN members AS actors ON actors.id = audit.member_id
         LEFT JOIN members AS subjects ON subjects.id = audit.subject_id
         LEFT JOIN api_keys ON api_keys.id = audit.key_id
         WHERE ${conditions.join(" AND ")}
         ORDER BY audit.id DESC LIMIT $limit`,
      )
      .all({
        desk,
        key,
        actions: JSON.stringify(actions),
        by,
        before: before ?? Number.MAX_SAFE_INTEGER,
        limit,
      });
  }

  creatorsOf(desk: string, keyIds: readonly string[]): ReadonlyMap<string, string | null> {
    const rows = this.db
      .query<{ key_id: string; email: string | null }, Record<string, number | string>>(
        `SELECT audit.key_id, members.email FROM json_each($keys) AS wanted
         CROSS JOIN audit ON audit.key_id = wanted.value
         LEFT JOIN members ON members.id = audit.member_id
         WHERE +audit.desk_id = $desk AND audit.action = 'key.created'`,
      )
      .all({ desk: this.getDesk(desk).id, keys: JSON.stringify(keyIds) });
    return new Map(rows.map(({ key_id, email }) => [key_id, email]));
  }
}

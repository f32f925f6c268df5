/** The audit. */
import {
  actionsAbout,
  type AuditEntry,
  type AuditPage,
  type AuditRecord,
  auditPhrases,
  BY_ADMIN,
} from "../../domain/audit/audit.ts";
import { redactKeys } from "../../domain/key/key.ts";
import type { Audit } from "../../domain/storage/audit.ts";
import type { Author } from "../../domain/storage/author.ts";
import { NotFoundError, SignedOutError } from "../../lib/errors.ts";
import { osUser } from "../os-user.ts";
import { deskIdOf, getDesk } from "./desk-rows.ts";
import { itemsOf, JOIN_NEXT, unindexed } from "./dialect.ts";
import type { Sql, Tx, Value } from "./sql.ts";

/**
 * Throws, and so undoes the change, if the author, the key or the subject is of another desk, or the author
 * was removed, signed out or made a viewer meanwhile: the last line of defence between desks. A viewer changes
 * nothing but themselves.
 */
export async function addEntry(
  tx: Tx,
  { memberId, signedOutAt, client }: Author,
  { deskId, action, keyId, subjectId, detail }: Omit<AuditEntry, "actor" | "client">,
): Promise<void> {
  if (memberId !== null && signedOutAt !== undefined) {
    await requireSession(tx, memberId, signedOutAt);
  }
  const added = await tx.run(
    `INSERT INTO audit (at, desk_id, member_id, action, key_id, subject_id, detail, client, os_user)
     SELECT $1, $2, $3, $4, $5, $6, $7, $8, $9
     WHERE (CAST($3 AS TEXT) IS NULL OR EXISTS
         (SELECT 1 FROM members WHERE id = $3 AND desk_id IS NOT DISTINCT FROM $2 AND removed_at IS NULL
            AND (role = 'manager' OR ($4 LIKE 'member.%' AND coalesce($6, $3) = $3))))
       AND (CAST($6 AS TEXT) IS NULL OR EXISTS
         (SELECT 1 FROM members WHERE id = $6 AND desk_id IS NOT DISTINCT FROM $2))
       AND (CAST($5 AS TEXT) IS NULL OR EXISTS
         (SELECT 1 FROM api_keys WHERE id = $5 AND desk_id IS NOT DISTINCT FROM $2))`,
    tx.now,
    deskId,
    memberId,
    action,
    keyId ?? null,
    subjectId ?? null,
    detail == null ? null : redactKeys(detail),
    client,
    memberId === null && client === null ? osUser() : null,
  );
  if (added === 0) throw new NotFoundError("There is no such member of this desk.");
}

async function requireSession(tx: Tx, memberId: string, signedOutAt: number): Promise<void> {
  const row = await tx.get<{ signed_out_at: number }>(
    "SELECT signed_out_at FROM members WHERE id = $1",
    memberId,
  );
  if (row !== null && row.signed_out_at !== signedOutAt) throw new SignedOutError();
}

const RECORDS = `SELECT audit.id, audit.at, desks.name AS desk, audit.action, actors.email AS actor,
    audit.key_id, api_keys.label AS key_label, api_keys.last4 AS key_last4,
    subjects.email AS subject, audit.detail, audit.client, audit.os_user
  FROM audit
  LEFT JOIN desks ON desks.id = audit.desk_id
  LEFT JOIN members AS actors ON actors.id = audit.member_id
  LEFT JOIN members AS subjects ON subjects.id = audit.subject_id
  LEFT JOIN api_keys ON api_keys.id = audit.key_id`;

export function audit(sql: Sql) {
  return {
    append: ({ actor: memberId, client, ...entry }) =>
      sql.transaction((tx) => addEntry(tx, { memberId, client }, entry)),

    async list(page) {
      const { conditions, values } = conditionsOf(page, await deskIdOf(sql, page.desk));
      return sql.all<AuditRecord>(
        `${RECORDS} WHERE ${conditions.join(" AND ")} ORDER BY audit.id DESC LIMIT $2`,
        ...values,
      );
    },

    async newestId() {
      return (await sql.get<{ id: number | null }>("SELECT max(id) AS id FROM audit"))?.id ?? 0;
    },

    listSince: ({ after, actions, limit }) =>
      sql.all<AuditRecord>(
        `${RECORDS} WHERE audit.id > $1
           AND ${unindexed("audit.action")} IN (SELECT value FROM ${itemsOf("$2")} AS wanted)
         ORDER BY audit.id LIMIT $3`,
        after,
        JSON.stringify(actions),
        limit,
      ),

    async creatorsOf(desk, keyIds) {
      const { id } = await getDesk(sql, desk);
      const rows = await sql.all<{ key_id: string; email: string | null }>(
        `SELECT audit.key_id, members.email FROM ${itemsOf("$1")} AS wanted
         ${JOIN_NEXT} audit ON audit.key_id = wanted.value
         LEFT JOIN members ON members.id = audit.member_id
         WHERE ${unindexed("audit.desk_id")} = $2 AND audit.action = 'key.created'`,
        JSON.stringify(keyIds),
        id,
      );
      return new Map(rows.map(({ key_id, email }) => [key_id, email]));
    },
  } satisfies Audit;
}

/** Of `$1`, what comes before, `$2`, the limit, and more. */
function conditionsOf(
  { key = null, about = null, by = null, before, limit }: AuditPage,
  desk: number | null,
): { conditions: string[]; values: Value[] } {
  const values: Value[] = [before ?? Number.MAX_SAFE_INTEGER, limit];
  const given = (value: Value): string => `$${values.push(value)}`;
  const conditions = ["audit.id < $1"];
  const actions = about === null ? Object.keys(auditPhrases) : actionsAbout(about);
  const isFiltered = about !== null || by !== null;
  const isSearch = desk !== null && key === null && isFiltered;
  const wanted = isSearch || about !== null ? given(JSON.stringify(actions)) : "";
  const actor = by === null || by === BY_ADMIN ? by : given(by);
  if (desk !== null) {
    const ofDesk = given(desk);
    // One key has few entries: the desk's index would find more.
    const column = key === null && !isFiltered ? "audit.desk_id" : unindexed("audit.desk_id");
    conditions.push(`${column} = ${ofDesk}`);
    if (isSearch) conditions.push(latestOfEach(wanted, ofDesk, actor));
  }
  if (key !== null) conditions.push(`audit.key_id = ${given(key)}`);
  if (about !== null) {
    conditions.push(`audit.action IN (SELECT value FROM ${itemsOf(wanted)} AS wanted)`);
  }
  if (actor !== null) {
    // Strangers have an address.
    const isAdmins = "audit.member_id IS NULL AND audit.client IS NULL";
    conditions.push(actor === BY_ADMIN ? isAdmins : `actors.email = ${actor}`);
  }
  return { conditions, values };
}

/**
 * The latest entries of each action, of which the page has the latest: so many are looked at, however long
 * the audit is. `actor`: an address's parameter, or administrators, who never fail to sign in as strangers do.
 */
function latestOfEach(actions: string, desk: string, actor: string | null): string {
  const [actors, isBy] =
    actor === null
      ? ["", ""]
      : actor === BY_ADMIN
        ? ["", "AND one.member_id IS NULL AND one.action <> 'member.sign_in_failed'"]
        : [
            `${JOIN_NEXT} members AS actor ON actor.desk_id = ${desk} AND actor.email = ${actor}`,
            "AND one.member_id = actor.id",
          ];
  return `audit.id IN (SELECT latest.id FROM ${itemsOf(actions)} AS wanted ${actors}
    ${JOIN_NEXT} audit AS latest ON latest.id IN
      (SELECT one.id FROM audit AS one
       WHERE one.desk_id = ${desk} AND one.action = wanted.value ${isBy} AND one.id < $1
       ORDER BY one.id DESC LIMIT $2))`;
}

/** How keys are read, and how many there may be. Every query has `$1`, the present, so that the pieces fit together. */
import type { Desk } from "../../domain/desk/desk.ts";
import type { ApiKey } from "../../domain/key/key.ts";
import type { KeyLimits } from "../../domain/key/limits.ts";
import { NotFoundError, UserError } from "../../lib/errors.ts";
import type { OfDesk } from "../../domain/storage/registry.ts";
import { deskIdOf } from "./desk-rows.ts";
import { indexedBy } from "./dialect.ts";
import type { Reader, Value } from "./sql.ts";

/** When a key expires, as in the index `api_keys_active`. */
export const EXPIRY = "coalesce(api_keys.expires_at, 9223372036854775807)";

/** As in the index `api_keys_active`. */
export const IS_ACTIVE_ANYWHERE = `api_keys.revoked_at IS NULL AND ${EXPIRY} > $1`;

/** Of the desk `$2`; null: of all desks. */
export const IS_ACTIVE = `api_keys.desk_id IS NOT DISTINCT FROM $2 AND ${IS_ACTIVE_ANYWHERE}`;

/** The active successor of a row of `api_keys`, or null: one that has ended replaces nothing. */
export function successorId(now: string): string {
  return `(SELECT successor.id FROM api_keys AS successor
    WHERE successor.id = api_keys.successor_id AND successor.revoked_at IS NULL
      AND coalesce(successor.expires_at, 9223372036854775807) > ${now})`;
}

const KEY_COLUMNS = `api_keys.id, api_keys.scope, desks.name AS desk, api_keys.label, api_keys.last4, api_keys.created_at,
  api_keys.expires_at, api_keys.last_used_at, api_keys.revoked_at, desks.archived_at AS desk_archived_at,
  api_keys.lifetime_ms, api_keys.limits, ${successorId("$1")} AS successor_id`;

/** `values`: from `$2` on. */
export async function selectKeys(
  sql: Reader,
  index: string,
  condition: string,
  ...values: Value[]
): Promise<ApiKey[]> {
  const rows = await sql.all<Omit<ApiKey, "limits"> & { readonly limits: string | null }>(
    `SELECT ${KEY_COLUMNS} FROM api_keys ${index}
     LEFT JOIN desks ON desks.id = api_keys.desk_id ${condition}`,
    sql.now,
    ...values,
  );
  return rows.map(({ limits, ...key }) => ({
    ...key,
    limits: limits === null ? null : (JSON.parse(limits) as KeyLimits),
  }));
}

export async function findKey(
  sql: Reader,
  id: string,
  { desk = null }: OfDesk = {},
): Promise<ApiKey | null> {
  const where = "WHERE api_keys.id = $2 AND (CAST($3 AS INTEGER) IS NULL OR api_keys.desk_id = $3)";
  const [key] = await selectKeys(sql, "", where, id.toUpperCase(), await deskIdOf(sql, desk));
  return key ?? null;
}

/** Throws `NotFoundError` for an unknown id. */
export async function getKey(sql: Reader, id: string, of: OfDesk = {}): Promise<ApiKey> {
  const key = await findKey(sql, id, of);
  if (key !== null) return key;
  // Do not repeat what was typed: it may be a key, pasted by mistake.
  throw new NotFoundError("There is no key with this id: list the ids", "key list");
}

/** The limit on active read keys for all desks. */
const ALL_DESKS_KEYS_MAX = 100;

/**
 * Throws {@link UserError} if there is no room for another key. Keys with a successor do not count towards the
 * limit, so that a desk at its limit can still rotate each key. The second limit bounds the keys in an overlap.
 * `desk`: null for the read keys for all desks.
 */
export async function requireRoom(
  sql: Reader,
  desk: Desk | null,
  { isReplacement }: { readonly isReplacement: boolean },
): Promise<void> {
  const max = desk?.keys_max ?? ALL_DESKS_KEYS_MAX;
  const { active, rotated } = (await sql.get<{ active: number; rotated: number }>(
    `SELECT count(*) AS active, count(*) FILTER (WHERE ${successorId("$1")} IS NOT NULL) AS rotated
     FROM api_keys ${indexedBy("api_keys_active")} WHERE ${IS_ACTIVE}`,
    sql.now,
    desk?.id ?? null,
  )) as { active: number; rotated: number };
  const count = active - rotated;
  if (!isReplacement && count >= max) {
    throw desk === null
      ? new UserError(
          `There are already ${count} active read keys for all desks: revoke one`,
          "key revoke ID",
        )
      : new UserError(
          `Desk "${desk.name}" has ${count} of at most ${max} active ${max === 1 ? "key" : "keys"}: revoke keys that are not used, or have an administrator raise the limit`,
          `desk limit ${desk.name} --keys ${2 * count}`,
        );
  }
  if (active < 2 * max) return;
  const keys =
    desk === null
      ? `There are ${active} active read keys for all desks`
      : `Desk "${desk.name}" has ${active} active keys`;
  throw new UserError(
    `${keys}, ${rotated} of which were rotated and still work: wait until these expire, or revoke one that is no longer used`,
    "key revoke ID",
  );
}

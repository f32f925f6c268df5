/** Queries about a desk's keys that stay fast with many keys. */
import type { Database } from "bun:sqlite";
import type { ApiKey } from "../../domain/key.ts";
import type { KeyPage } from "../../domain/storage.ts";

export const KEY_COLUMNS = `api_keys.id, desks.name AS desk, api_keys.label, api_keys.last4, api_keys.created_at,
  api_keys.expires_at, api_keys.last_used_at, api_keys.revoked_at`;

/** Written like the index `api_keys_active`, so that SQLite uses it. */
const IS_ACTIVE = `api_keys.desk_id = $desk AND api_keys.revoked_at IS NULL
  AND ifnull(api_keys.expires_at, 9223372036854775807) > $now`;
const HAS_ENDED = `api_keys.desk_id = $desk
  AND (api_keys.revoked_at IS NOT NULL OR api_keys.expires_at <= $now)`;

const WAS_ROTATED =
  "EXISTS (SELECT 1 FROM audit WHERE key_id = api_keys.id AND action = 'key.rotated')";

/** Sorts after every id. */
const NO_CURSOR = "~";

/** Newest first. */
export function pageOfKeys(
  db: Database,
  deskId: number,
  { state, before, limit }: Omit<KeyPage, "desk">,
  now: number,
): ApiKey[] {
  const [index, condition] =
    state === "active" ? ["api_keys_active", IS_ACTIVE] : ["api_keys_desk", HAS_ENDED];
  return db
    .query<ApiKey, Record<string, string | number>>(
      `SELECT ${KEY_COLUMNS} FROM api_keys INDEXED BY ${index}
       CROSS JOIN desks ON desks.id = api_keys.desk_id
       WHERE ${condition} AND api_keys.id < $before ORDER BY api_keys.id DESC LIMIT $limit`,
    )
    .all({ desk: deskId, now, before: before ?? NO_CURSOR, limit });
}

export function hasNamesake(
  db: Database,
  deskId: number,
  { id, label }: Pick<ApiKey, "id" | "label">,
  now: number,
): boolean {
  return (
    db
      .query(
        `SELECT 1 FROM api_keys INDEXED BY api_keys_active
         WHERE ${IS_ACTIVE} AND api_keys.label = $label AND api_keys.id <> $id LIMIT 1`,
      )
      .get({ desk: deskId, now, label, id }) !== null
  );
}

/** `rotated`: active keys that have a successor, and work until their overlap ends. */
export function countActive(
  db: Database,
  deskId: number,
  now: number,
): { readonly active: number; readonly rotated: number } {
  return db
    .query(
      `SELECT count(*) AS active, count(*) FILTER (WHERE ${WAS_ROTATED}) AS rotated
       FROM api_keys INDEXED BY api_keys_active WHERE ${IS_ACTIVE}`,
    )
    .get({ desk: deskId, now }) as { active: number; rotated: number };
}

/** Returns null if the key was not rotated. */
export function successorId(db: Database, id: string): string | null {
  // A rotation's detail ends with the successor's id.
  const sql = `SELECT substr(detail, -26) AS id FROM audit
    WHERE key_id = ? AND action = 'key.rotated' ORDER BY id DESC LIMIT 1`;
  return db.query<{ id: string }, [string]>(sql).get(id)?.id ?? null;
}

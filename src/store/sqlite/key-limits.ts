/** How many active keys a desk may have, and how many read keys there may be for all desks. */
import type { Database } from "bun:sqlite";
import type { Desk } from "../../domain/desk.ts";
import { UserError } from "../../domain/errors.ts";
import { IS_ACTIVE } from "./desks.ts";

/** Of a row of `api_keys`. */
export const WAS_ROTATED =
  "EXISTS (SELECT 1 FROM audit WHERE key_id = api_keys.id AND action = 'key.rotated')";

/** The limit on active read keys for all desks. */
const ALL_DESKS_KEYS_MAX = 100;

/**
 * Throws {@link UserError} if there is no room for another key. Keys that were rotated do not count towards the
 * limit, so that a desk at its limit can still rotate each key. The second limit bounds the keys in an overlap.
 * `desk`: null for the read keys for all desks.
 */
export function requireRoom(
  db: Database,
  desk: Desk | null,
  { now, isReplacement }: { readonly now: number; readonly isReplacement: boolean },
): void {
  const max = desk?.keys_max ?? ALL_DESKS_KEYS_MAX;
  const { active, rotated } = db
    .query(
      `SELECT count(*) AS active, count(*) FILTER (WHERE ${WAS_ROTATED}) AS rotated
       FROM api_keys INDEXED BY api_keys_active WHERE ${IS_ACTIVE}`,
    )
    .get({ desk: desk?.id ?? null, now }) as { active: number; rotated: number };
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

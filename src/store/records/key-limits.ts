/** How many active keys a desk may have, and how many read keys there may be for all desks. */
import type { Desk } from "../../domain/desk/desk.ts";
import { UserError } from "../../lib/errors.ts";
import { indexedBy } from "./dialect.ts";
import { IS_ACTIVE, successorId } from "./key-rows.ts";
import type { Reader } from "./sql.ts";

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

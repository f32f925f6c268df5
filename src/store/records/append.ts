/** What every engine decides in the transaction that stores signals, each with statements of its own. */
import { type KeyLife, type KeyScope, keyState } from "../../domain/key/key.ts";
import { meansTheSame } from "../../domain/signal/same-json.ts";
import { fieldNames, type Signal } from "../../domain/signal/signal.ts";

/** Who has the key with the hash `$1` and the scope `$2`: a `KeyOwner` or a `Reader`. */
export const FIND_OWNER = `SELECT api_keys.id AS "keyId", desk_id AS "deskId", name AS "deskName", expires_at, revoked_at,
    archived_at AS desk_archived_at, limits
  FROM api_keys LEFT JOIN desks ON desks.id = desk_id WHERE key_hash = $1 AND scope = $2`;

/** The {@link KeyAtWork} with the id `$1`. */
export const FIND_KEY = `SELECT scope, expires_at, revoked_at, archived_at AS desk_archived_at,
    CASE WHEN successor_id IS NULL OR last_used_at >
      (SELECT created_at FROM api_keys AS next WHERE next.id = api_keys.successor_id)
    THEN last_used_at END AS last_used_at
  FROM api_keys LEFT JOIN desks ON desks.id = desk_id WHERE api_keys.id = $1`;

export interface KeyAtWork extends KeyLife {
  readonly scope: KeyScope;
  /** Null until the first use since a rotation: that one is written at once, because it says who still has the old key. */
  last_used_at: number | null;
}

/** Asks once for all requests of one turn of the event loop. A longer cache would have to be told of every revoke. */
export function oncePerTurn<Found>(find: (key: string) => Found): (key: string) => Found {
  const found = new Map<string, Found>();
  return (key) => {
    const known = found.get(key);
    if (known !== undefined) return known;
    const owner = find(key);
    if (found.size === 0) setImmediate(() => found.clear());
    found.set(key, owner);
    return owner;
  };
}

/** A key's last use is written at most this often. */
const LAST_USED_INTERVAL_MS = 60_000;

/**
 * Whether a signal of this key may be stored. A revoke either committed before the transaction, or waits for its end: so
 * no signal commits after its key's revoke. The same holds for the archiving of its desk.
 */
export function mayStore(key: KeyAtWork | null, receivedAt: number): key is KeyAtWork {
  return key !== null && key.scope === "send" && keyState(key, receivedAt) === "active";
}

/** Whether this use must be written. The absolute value: a clock that was set back must not stop these writes. */
export function isUseDue({ last_used_at }: KeyAtWork, at: number): boolean {
  return last_used_at === null || Math.abs(at - last_used_at) >= LAST_USED_INTERVAL_MS;
}

/** The fields in which a duplicate is not the same as the original. Metadata is compared by what it means as JSON. */
export function differencesOf(original: Signal, duplicate: Signal): (keyof Signal)[] {
  return fieldNames.filter((column) => {
    const [one, other] = [original[column], duplicate[column]];
    if (one === other) return false;
    if (column !== "metadata" || one === null || other === null) return true;
    return !meansTheSame(String(one), String(other));
  });
}

/** Whether a key may be ended yet: what its last use says. */
import { type ApiKey, keyState } from "../../domain/key.ts";
import { timeAgo } from "../ui/words.ts";

/** A key that was used within so long has somebody who uses it. */
const IN_USE_MS = 60 * 60 * 1_000;

/** A sentence about a key that has a successor. `name` begins it, such as "The old key". */
export function overlapAdvice(
  name: string,
  key: Pick<ApiKey, "last_used_at" | "expires_at" | "revoked_at">,
  now: number,
): string {
  const used = lastUse(name, key, now);
  if (keyState(key, now) !== "active") return `${used}.`;
  if (key.last_used_at === null) return `${used}: it is safe to revoke.`;
  return now - key.last_used_at < IN_USE_MS
    ? `${used}: not safe to revoke yet.`
    : `${used}: safe to revoke once everything that used it has the new key.`;
}

/** Without a full stop. */
export function lastUse(
  name: string,
  { last_used_at }: Pick<ApiKey, "last_used_at">,
  now: number,
): string {
  return last_used_at === null
    ? `${name} has never been used`
    : `${name} was last used ${timeAgo(last_used_at, now)}`;
}

/** Desks without a key, and keys that need attention. */
import type { ApiKey } from "../domain/key/key.ts";
import { shellQuoted } from "../lib/text/shell.ts";
import { formatTime, plural } from "../lib/text/words.ts";
import { type Context, type Finding, ok, warning } from "./finding.ts";
import type { EndedKey } from "./stored.ts";

/** Keys of one kind that are named one by one. */
const KEYS_NAMED_MAX = 5;

export async function checkDesks({ stored, toType }: Context): Promise<readonly Finding[]> {
  const { desks, archived } = await stored();
  if (desks.length === 0) {
    return archived > 0
      ? [warning("Every desk is archived.", toType("desk archive NAME --undo"))]
      : [warning("There is no desk.", toType("desk create NAME"))];
  }
  const without = desks.filter(({ active_keys, read_keys }) => active_keys === read_keys);
  if (without.length === 0) {
    return [ok(`${desks.length === 1 ? "The desk has" : "All desks have"} an active send key.`)];
  }
  return without.map(({ name }) =>
    warning(`Desk ${name} has no active send key.`, toType(`key mint --desk ${shellQuoted(name)}`)),
  );
}

export async function checkKeys({ stored, toType }: Context): Promise<readonly Finding[]> {
  const { expiring, rotated, stillInUse } = await stored();
  const found = [
    ...firstOf(expiring, "that expires within 7 days", toType, (key) => ({
      sentence: `${nameOf(key)} expires at ${formatTime(key.expires_at)}.`,
      next: toType(`key rotate ${key.id}`),
    })),
    ...firstOf(rotated, "that was rotated and is still used", toType, (key) => ({
      sentence: `${nameOf(key)} was rotated, is still used, and expires at ${formatTime(key.expires_at)}.`,
      next: useSuccessor(key),
    })),
    ...firstOf(stillInUse, "that has ended and is still in use", toType, (key) => {
      const ended = key.state === "archived" ? ", which is archived," : ` is ${key.state}, and`;
      return {
        sentence: `${nameOf(key)}${ended} got 401 in the last 24 hours: something still uses it.`,
        next:
          key.successor_id === null
            ? `stop what uses it${alternativeTo(key, toType)}`
            : useSuccessor(key),
      };
    }),
  ];
  return found.length === 0 ? [ok("None expires soon, and none that has ended is in use.")] : found;
}

function useSuccessor({ successor_id }: ApiKey): string {
  return `let what uses it change to its successor, ${successor_id}`;
}

function nameOf({ id, label, desk }: ApiKey): string {
  return `Key ${label ?? id} of ${desk === null ? "all desks" : `desk ${desk}`}`;
}

/** An archived desk gets no new key, and bringing it back revives no key that has ended. */
function alternativeTo(
  { state, scope, desk, desk_archived_at }: EndedKey,
  toType: Context["toType"],
): string {
  const name = desk === null ? "" : ` ${shellQuoted(desk)}`;
  if (state === "archived") {
    return `, or bring the desk back: ${toType(`desk archive${name} --undo`)}`;
  }
  if (desk_archived_at !== null) return "";
  const mint = `key mint${scope === "read" ? " --read" : ""}${name && ` --desk${name}`}`;
  return `, or give it a new key: ${toType(mint)}`;
}

function firstOf<Key extends ApiKey>(
  keys: readonly Key[],
  which: string,
  toType: Context["toType"],
  describe: (key: Key) => { readonly sentence: string; readonly next: string },
): Finding[] {
  const named = keys.slice(0, KEYS_NAMED_MAX).map(describe);
  const more = keys.length - named.length;
  const all =
    more > 0
      ? [...named, { sentence: `${plural(more, "more key")} ${which}.`, next: toType("key list") }]
      : named;
  return all.map(({ sentence, next }) => warning(sentence, next));
}

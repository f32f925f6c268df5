/** Which key a person means: commands take its id, its label, its last four characters, or the key itself. */
import { Argument } from "commander";
import { UsageError, UserError } from "../../lib/errors.ts";
import { type ApiKey, keyPrefixes, keysIn, keyState, looksLikeKey } from "../../domain/key/key.ts";
import { showHidden } from "../../lib/text/hidden.ts";
import type { Awaitable } from "../../domain/storage/awaitable.ts";
import type { Registry } from "../../domain/storage/registry.ts";
import { withStorage } from "../../store/open.ts";
import { namedBy } from "../../cli/options.ts";
import { printNote } from "../../cli/print.ts";

/** Candidates that the error names. */
const CANDIDATES_MAX = 5;

export function keyArgument(whose: string): Argument {
  const description = `${whose} id, or its label or last four characters if no other has them; - reads the key itself from stdin`;
  return namedBy("key", new Argument("<key>", description));
}

/** During an overlap two keys have one label: it names the successor, because that one is still to be rotated. */
export function keyToRotate(registry: Registry, name: string): Promise<ApiKey> {
  return keyNamed(registry, name, {
    prefer: ({ successor_id }) => successor_id === null,
  });
}

/**
 * Throws {@link UserError} if no key or several have this name. Among several, an active key comes before
 * keys that have ended, because it is the one that can still be changed.
 */
export async function keyNamed(
  registry: Registry,
  name: string,
  {
    desk = null,
    prefer = () => true,
  }: {
    /** Only keys of this desk; null: of all desks. */
    readonly desk?: string | null | undefined;
    /** Which of several active keys is meant. */
    readonly prefer?: (key: ApiKey) => boolean;
  } = {},
): Promise<ApiKey> {
  const byId = await registry.findKey(name, { desk });
  if (byId !== null) return byId;
  // Do not repeat what was typed: it may be a key, pasted by mistake.
  if (looksLikeKey(name)) {
    throw new UsageError(
      "This is a key, not a key's id: take the id from the list of keys, or revoke the key itself, from stdin,",
      "key revoke -",
    );
  }
  const named = (await registry.listKeys(desk)).filter(
    ({ label, last4 }) => label === name || last4 === name.toLowerCase(),
  );
  const active = named.filter((key) => keyState(key, Date.now()) === "active");
  const preferred = active.filter(prefer);
  const [found, ...others] = [preferred, active, named].find(({ length }) => length > 0) ?? [];
  if (found === undefined) {
    throw new UserError(
      "There is no key with this id, label or last four characters: list the keys",
      "key list",
    );
  }
  if (others.length > 0) throw ambiguous([found, ...others]);
  return found;
}

function ambiguous(candidates: readonly ApiKey[]): UserError {
  const named = candidates.slice(0, CANDIDATES_MAX).map((key) => showHidden(describeKey(key)));
  const more = candidates.length - named.length;
  return new UserError(
    `${candidates.length} keys have this name, give the id of one: ${named.join("; ")}${more > 0 ? `; and ${more} more` : ""}. List all keys`,
    "key list",
  );
}

export function describeKey({ id, scope, desk, label, last4 }: ApiKey): string {
  const what = scope === "read" ? "a read key for " : "";
  return `${id} (${what}${desk === null ? "all desks" : `desk ${desk}`}${label === null ? "" : `, ${label}`}, ending in ${last4})`;
}

/** With - as the name, reads the key itself from stdin. */
export async function withKey<T>(
  { name, data, find = keyNamed }: { name: string; data: string; find?: typeof keyToRotate },
  work: (registry: Registry, key: ApiKey) => Awaitable<T>,
): Promise<T> {
  const itself = name === "-" ? await keyFromStdin() : null;
  return withStorage(data, async ({ registry }) => {
    const key = itself === null ? find(registry, name) : keyItself(registry, itself, data);
    return work(registry, await key);
  });
}

async function keyItself(registry: Registry, key: string, data: string): Promise<ApiKey> {
  const found = await registry.findKeyItself(key);
  if (found !== null) return found;
  throw new UserError(
    `This key is not one of ${data}, and nothing was changed: name the folder of its server with --data DIR.`,
  );
}

/** Longer than any text that somebody pastes around a key. */
const TEXT_MAX = 1024 * 1024;

/** Reads a leaked key, alone or in other text. On a terminal, Enter ends the input. Throws {@link UserError}. */
async function keyFromStdin(): Promise<string> {
  if (process.stdin.isTTY) printNote("Paste the key, and press Enter:");
  const [key, ...others] = keysIn(await readStdin());
  if (key === undefined) {
    throw new UserError(
      `There is no key on stdin: paste the whole key, ${Object.values(keyPrefixes).join(" or ")} and 64 digits, or name it by its id: list the keys`,
      "key list",
    );
  }
  if (others.length === 0) return key;
  throw new UserError(
    `There are ${others.length + 1} keys on stdin, and nothing was changed: give one at a time.`,
  );
}

async function readStdin(): Promise<string> {
  const decoder = new TextDecoder();
  let text = "";
  for await (const chunk of process.stdin as AsyncIterable<Uint8Array>) {
    text += decoder.decode(chunk, { stream: true });
    if (text.length > TEXT_MAX || (process.stdin.isTTY && text.includes("\n"))) break;
  }
  return text;
}

/** Single requests before the load: check the answer, and store the originals of duplicates. */
import { idKindOf, type LoadKind, newId, type Target } from "./load.ts";
import { bodyOf, DUPLICATE_IDS, duplicateId, ID_PLACEHOLDER } from "./signal.ts";

const AT_ONCE = 50;
const TIMEOUT_MS = 30_000;

/** Throws if the answer has another status. */
export async function send(
  { port, key, seed }: Target,
  kind: LoadKind,
  status: number,
  id = kind === "duplicates" ? duplicateId(seed, 0) : newId(idKindOf(kind)),
): Promise<void> {
  const response = await fetch(`http://127.0.0.1:${port}/v1/signals`, {
    method: "POST",
    headers: { Authorization: `Bearer ${key}`, "Content-Type": "application/json" },
    body: bodyOf(kind).replace(ID_PLACEHOLDER, id),
    signal: AbortSignal.timeout(TIMEOUT_MS),
  });
  const text = await response.text();
  if (response.status === status) return;
  throw new Error(`${kind}: answered with ${response.status} and not ${status}: ${text}`);
}

/** Stores the signals that will be sent again. Returns their number. */
export async function storeDuplicates(target: Target): Promise<number> {
  const ids = Array.from({ length: DUPLICATE_IDS }, (_, n) => duplicateId(target.seed, n));
  for (let first = 0; first < ids.length; first += AT_ONCE) {
    const some = ids.slice(first, first + AT_ONCE);
    await Promise.all(some.map((id) => send(target, "v7", 201, id)));
  }
  return ids.length;
}

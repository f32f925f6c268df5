/** What storage and server say of desks and keys, for the checks. */
import type { DeskOverview } from "../domain/desk/desk.ts";
import { type ApiKey, EXPIRING_SOON_MS, type KeyState, keyState } from "../domain/key/key.ts";
import { newestSignalId } from "../domain/signal/chunks.ts";
import type { Inspected } from "../domain/storage/engine.ts";
import { HOUR_MS, MINUTE_MS } from "../lib/text/time.ts";
import type { ServerStatus } from "../ops/server.ts";

/** Keys of a desk that got 401, those included that are active again since their desk was brought back. */
const REFUSED_KEYS_MAX = 1_000;
/** The hour under way, and the 23 before it. */
const STILL_IN_USE_MS = 23 * HOUR_MS;

type DeskStatus = Pick<DeskOverview, "name" | "active_keys" | "read_keys" | "latest_signal">;

export interface EndedKey extends ApiKey {
  readonly state: Exclude<KeyState, "active">;
}

export type Stored = Awaited<ReturnType<typeof readStored>>;

/** A few look-ups in indexes, however many signals there are. */
export async function readStored(
  { registry, signals, activity, replication }: Inspected,
  server: ServerStatus | null,
  now: number,
) {
  const since = now - STILL_IN_USE_MS;
  const desks: DeskStatus[] = [];
  let archived = 0;
  const expiring: ApiKey[] = [];
  const rotated: ApiKey[] = [];
  const refused: string[] = [];
  for (const desk of await registry.listOverviews(0)) {
    const { id: deskId, name, archived_at, active_keys, read_keys, latest_signal } = desk;
    refused.push(...(await activity.keysStillInUse(deskId, since, REFUSED_KEYS_MAX)));
    if (archived_at !== null) {
      archived += 1;
      continue;
    }
    desks.push({ name, active_keys, read_keys, latest_signal });
    expiring.push(...(await registry.expiringKeys(name, now + EXPIRING_SOON_MS)));
    rotated.push(...(await registry.rotatedKeysInUse(name)));
  }
  expiring.push(...(await registry.expiringKeys(null, now + EXPIRING_SOON_MS)));
  rotated.push(...(await registry.rotatedKeysInUse(null)));
  const recent = (server?.refused_keys ?? []).filter(({ at }) => at >= since);
  refused.push(...recent.map(({ key_id }) => key_id));
  const stillInUse: EndedKey[] = [];
  for (const id of new Set(refused)) {
    const key = await registry.findKey(id);
    const state = key === null ? "active" : keyState(key, now);
    if (key !== null && state !== "active") stillInUse.push({ ...key, state });
  }
  const rate = {
    last_minute: await signals.countBetween(now - MINUTE_MS, now + 1),
    last_hour: await signals.countBetween(now - HOUR_MS, now + 1),
  };
  const newestId = await newestSignalId(signals, null);
  return {
    desks,
    archived,
    newestId,
    rate,
    expiring,
    rotated,
    stillInUse,
    replication: await replication(),
  };
}

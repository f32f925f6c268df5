/** What storage and server say of desks and keys, for the checks. */
import { type DeskOverview, EVERY_DESK } from "../domain/desk/desk.ts";
import {
  type ApiKey,
  EXPIRING_SOON_MS,
  type KeyState,
  keyState,
  STILL_IN_USE_MS,
} from "../domain/key/key.ts";
import type { Inspected } from "../domain/storage/engine.ts";
import { HOUR_MS, MINUTE_MS } from "../lib/text/time.ts";
import type { ServerStatus } from "../ops/server.ts";

/** Keys that got 401, those included that are active again since their desk was brought back. */
const REFUSED_KEYS_MAX = 10_000;

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
  const overviews = await registry.listOverviews(0);
  const desks: DeskStatus[] = overviews
    .filter(({ archived_at }) => archived_at === null)
    .map(({ name, active_keys, read_keys, latest_signal }) => ({
      name,
      active_keys,
      read_keys,
      latest_signal,
    }));
  const refused = await activity.keysStillInUse(null, since, REFUSED_KEYS_MAX);
  const recent = (server?.refused_keys ?? []).filter(({ at }) => at >= since);
  const found = await registry.findKeys([...refused, ...recent.map(({ key_id }) => key_id)]);
  const stillInUse = found.flatMap((key): EndedKey[] => {
    const state = keyState(key, now);
    return state === "active" ? [] : [{ ...key, state }];
  });
  const rate = {
    last_minute: await signals.countBetween(now - MINUTE_MS, now + 1),
    last_hour: await signals.countBetween(now - HOUR_MS, now + 1),
  };
  return {
    desks,
    archived: overviews.length - desks.length,
    rate,
    expiring: await registry.expiringKeys(EVERY_DESK, now + EXPIRING_SOON_MS),
    rotated: await registry.rotatedKeysInUse(EVERY_DESK),
    stillInUse,
    replication: await replication(),
  };
}

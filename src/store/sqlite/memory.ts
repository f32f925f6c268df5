/** Notes and attempts of the one server that has the folder: in memory, and forgotten with it. */
import type { Attempts } from "../../domain/storage/shared/attempts.ts";
import type { Notes } from "../../domain/storage/shared/notes.ts";
import { ExpiringMap } from "../../lib/expiring-map.ts";

/** Beyond it the oldest are forgotten. To push one out takes far more attempts than a count allows. */
const ENTRIES_MAX = 50_000;

export function notesInMemory(now: () => number): Notes {
  const notes = new ExpiringMap<string>(ENTRIES_MAX);
  return {
    set: (name, text, lifetimeMs) => notes.set(name, text, now(), lifetimeMs),
    add(name, text, lifetimeMs) {
      if (notes.get(name, now()) !== null) return false;
      notes.set(name, text, now(), lifetimeMs);
      return true;
    },
    get: (name) => notes.get(name, now()),
    take: (name) => notes.take(name, now()),
    delete: (name) => notes.delete(name),
  };
}

export function attemptsInMemory(now: () => number): Attempts {
  const counts = new ExpiringMap<{ times: number }>(ENTRIES_MAX);
  const find: Attempts["find"] = (name) => {
    const count = counts.get(name, now());
    return count && { times: count.times, leftMs: counts.endOf(name, now()) - now() };
  };
  return {
    add(name, windowMs) {
      const count = counts.get(name, now());
      if (count === null) counts.set(name, { times: 1 }, now(), windowMs);
      else count.times += 1;
      return { times: count?.times ?? 1, leftMs: counts.endOf(name, now()) - now() };
    },
    find,
    takeBack(name) {
      const count = counts.get(name, now());
      if (count === null) return;
      count.times -= 1;
      if (count.times === 0) counts.delete(name);
    },
  };
}

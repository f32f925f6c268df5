/** Which backups stay: the latest ones, or the newest of each hour, day and week. */
import { DAY_MS, HOUR_MS } from "../lib/text/time.ts";
import type { MadeBackup } from "./folder.ts";

/** The hours, days and weeks of UTC, by number. Weeks begin on Monday; the first day of the epoch was a Thursday. */
const tiers = {
  h: (at: number) => Math.floor(at / HOUR_MS),
  d: (at: number) => Math.floor(at / DAY_MS),
  w: (at: number) => Math.floor((at / DAY_MS + 3) / 7),
};

export type Tier = keyof typeof tiers;

/** How many of the latest, or of how many hours, days and weeks the newest. */
export type Keep = number | Readonly<Partial<Record<Tier, number>>>;

export function describeKeep(keep: Keep): string {
  if (typeof keep === "number") return `the latest ${keep} are kept`;
  const counts = Object.entries(keep).map(([tier, count]) => `${count}${tier}`);
  return `${counts.join(",")} are kept`;
}

/**
 * Returns the backups that no tier wants. The first always stays; the rest are given newest first. Hours, days and weeks
 * without a backup do not count: after a month without a server, all are still there.
 */
export function surplusOf(backups: readonly MadeBackup[], keep: Keep): MadeBackup[] {
  if (typeof keep === "number") return backups.slice(keep);
  const kept = new Set(backups.slice(0, 1));
  for (const [tier, count] of Object.entries(keep)) {
    const newest = new Map<number, MadeBackup>();
    for (const backup of backups) {
      const period = tiers[tier as Tier](backup.at);
      if (newest.size < count && !newest.has(period)) newest.set(period, backup);
    }
    for (const backup of newest.values()) kept.add(backup);
  }
  return backups.filter((backup) => !kept.has(backup));
}

/** `--backup-keep` with tiers: which backups stay. */
import { describe, expect, test } from "bun:test";
import { readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { MadeBackup } from "../../src/backups/folder.ts";
import { timeStamp } from "../../src/backups/folder.ts";
import { type Keep, surplusOf } from "../../src/backups/keep.ts";
import { readKeep } from "../../src/cli/keep.ts";
import { DAY_MS, HOUR_MS, MINUTE_MS } from "../../src/lib/text/time.ts";
import { temporaryFolder, until } from "../kit/setup.ts";
import { startJob } from "./_job.ts";

const nameOf = (at: number): string => `signalbox-${timeStamp(at)}.db`;
const backupAt = (at: number): MadeBackup => ({ file: new Date(at).toISOString(), at });

/** What is left if a backup is made at each of these times, and the surplus is deleted each time. */
function leftAfter(made: readonly number[], keep: Keep): string[] {
  let left: MadeBackup[] = [];
  for (const at of made) {
    left = [backupAt(at), ...left];
    const surplus = new Set(surplusOf(left, keep));
    left = left.filter((one) => !surplus.has(one));
  }
  return left.map(({ file }) => file.slice(0, 16));
}

/** From a Monday on, at an interval. */
function times(everyMs: number, forMs: number): number[] {
  const start = Date.parse("2026-06-01T00:00Z");
  return Array.from({ length: Math.ceil(forMs / everyMs) }, (_, index) => start + index * everyMs);
}

describe("tiers keep", () => {
  test("the newest of each of the last hours, days and weeks, in UTC, with weeks from Monday", () => {
    const left = leftAfter(times(10 * MINUTE_MS, 60 * DAY_MS + 12 * HOUR_MS), readKeep("3h,4d,3w"));
    expect(left).toEqual([
      // Hours, the newest of which is that of the day and of the week.
      "2026-07-31T11:50",
      "2026-07-31T10:50",
      "2026-07-31T09:50",
      // Days.
      "2026-07-30T23:50",
      "2026-07-29T23:50",
      "2026-07-28T23:50",
      // Weeks end with Sunday.
      "2026-07-26T23:50",
      "2026-07-19T23:50",
    ]);
  });

  test("24 hourly ones, whether one is made per minute, hour or day", () => {
    for (const everyMs of [MINUTE_MS, HOUR_MS, DAY_MS]) {
      const left = leftAfter(times(everyMs, 30 * DAY_MS), { h: 24 });
      expect(left).toHaveLength(24);
      expect(new Set(left.map((time) => time.slice(0, 13))).size).toBe(24);
    }
  });

  test("what they kept before a month without a server", () => {
    const before = times(HOUR_MS, 60 * DAY_MS);
    const kept = leftAfter(before, { h: 24, d: 7, w: 4 });
    const after = leftAfter([...before, (before.at(-1) ?? 0) + 31 * DAY_MS], { h: 24, d: 7, w: 4 });
    // The new one takes the place of an hour, a day and a week.
    expect(kept.filter((one) => !after.includes(one)).length).toBeLessThanOrEqual(3);
  });

  test("the one just made, even if the clock was set back", () => {
    const now = Date.parse("2026-06-10T12:00Z");
    const made = backupAt(now - 3 * DAY_MS);
    const others = [backupAt(now), backupAt(now - HOUR_MS)];
    expect(surplusOf([made, ...others], { h: 1 })).toEqual(others);
    expect(surplusOf([made, ...others], { h: 2 })).toEqual([others[1]] as MadeBackup[]);
  });
});

test("a number keeps the latest", () => {
  const left = leftAfter(times(HOUR_MS, DAY_MS), readKeep("2"));
  expect(left).toEqual(["2026-06-01T23:00", "2026-06-01T22:00"]);
});

test("tiers are read in any order, and told apart", () => {
  expect(readKeep("4w, 24h,7d")).toEqual({ w: 4, h: 24, d: 7 });
  expect(readKeep("1d")).toEqual({ d: 1 });
  expect(readKeep("1")).toBe(1);
});

test("the job deletes what no tier wants, and no file that is not its own", async () => {
  const dir = temporaryFolder();
  // Two of one hour of yesterday, one of the day before.
  const yesterday = Math.floor(Date.now() / DAY_MS) * DAY_MS - DAY_MS + HOUR_MS;
  const [surplus, daily, older] = [
    nameOf(yesterday),
    nameOf(yesterday + MINUTE_MS),
    nameOf(yesterday - DAY_MS),
  ];
  const others = ["signalbox-drill.json", "before-upgrade.db"];
  for (const name of [surplus, daily, older, ...others]) writeFileSync(join(dir, name), "kept");
  const { job, made } = startJob({ dir, keep: { h: 1, d: 2 } });
  await until(() => !readdirSync(dir).includes(older));
  await job.stop();
  const [newest = ""] = made;
  expect(readdirSync(dir).toSorted()).toEqual(
    [newest.slice(dir.length + 1), daily, ...others].toSorted(),
  );
});

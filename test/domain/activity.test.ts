/** The file of activity, and the rate of the last hour. */
import { Database } from "bun:sqlite";
import { expect, test } from "bun:test";
import { chmodSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { readLastHour } from "../../src/console/pages/home/last-hour.ts";
import { type Usual, usualOf, usualRate } from "../../src/domain/activity/usual.ts";
import {
  ACTIVITY_NAME,
  type ActivityFile,
  openActivity as openActivityFile,
} from "../../src/store/sqlite/side/activity.ts";
import { openDatabase } from "../../src/store/sqlite/files/open.ts";
import { DAY_MS, HOUR_MS, MINUTE_MS } from "../../src/lib/text/time.ts";
import { batchOf, minuteOf, rejectsOf, repeatsOf } from "./_activity.ts";
import { mintKey, onCleanup, temporaryFolder } from "../kit/setup.ts";
import { recordsIn } from "../kit/records.ts";

const NOW = Date.UTC(2026, 10, 21, 12, 30, 15);

const days = { deskId: 1, keyIds: null, width: "day", from: 0 } as const;
const allRejects = { deskId: 1, since: days, limit: 1_000 };

function openActivity(dataDir = temporaryFolder()): {
  activity: ActivityFile;
  said: string[];
  dataDir: string;
} {
  const said: string[] = [];
  const activity = openActivityFile(dataDir, (sentence) => said.push(sentence));
  onCleanup(() => activity.close());
  return { activity, said, dataDir };
}

test("what was sent with keys of another database is dropped", async () => {
  const { activity, said, dataDir } = openActivity();
  const db = openDatabase(dataDir, "command");
  onCleanup(() => db.close());
  const registry = recordsIn(db).registry;
  const keys: string[] = [];
  for (const desk of ["alpha", "beta"]) keys.push((await mintKey(registry, desk)).keyId);
  const [ours = "", theirs = ""] = keys;
  for (const keyId of [ours, theirs, "gone"]) {
    await activity.write(batchOf(minuteOf(NOW, { keyId, stored: 1 })));
    const rejects = batchOf(rejectsOf([keys.indexOf(keyId) + 5], NOW, { keyId }));
    await activity.write({ ...rejects, repeats: [repeatsOf("a", [], { keyId, lastAt: NOW })] });
  }
  await activity.keepKeysOf(db);
  expect((await activity.buckets(days)).map(({ stored: n }) => n)).toEqual([1]);
  expect((await activity.rejects(allRejects)).map(({ keyIds }) => keyIds)).toEqual([[ours]]);
  expect(await activity.repeatsOf(1, "a")).toMatchObject({ duplicates: 2 });
  expect(said).toEqual([]);
});

test("activity is kept, with a warning, when the keys cannot be read or its file is locked", async () => {
  const { activity, said, dataDir } = openActivity();
  await activity.write(batchOf(minuteOf(NOW, { stored: 1 })));
  const unreadable = new Database(":memory:");
  onCleanup(() => unreadable.close());
  await activity.keepKeysOf(unreadable);
  const holder = new Database(join(dataDir, ACTIVITY_NAME));
  onCleanup(() => holder.close());
  holder.run("BEGIN IMMEDIATE");
  const db = openDatabase(dataDir, "command");
  onCleanup(() => db.close());
  await activity.keepKeysOf(db);
  holder.run("ROLLBACK");
  expect(said).toEqual(Array(2).fill(expect.stringContaining("was not dropped")));
  expect(await activity.buckets(days)).toHaveLength(1);
});

/** What pages read of desk 1. */
const read = async (activity: ActivityFile) => [
  await activity.buckets(days),
  await activity.rejects(allRejects),
  await activity.keysStillInUse(1, NOW, 10),
  await activity.repeatsOf(1, "a"),
  await activity.differing({ deskId: 1, before: null, limit: 10 }),
  await activity.differingTotal(1, NOW),
];

test("what a locked file refuses is read with what it has, and is written later", async () => {
  const free = openActivity().activity;
  const { activity, dataDir } = openActivity();
  const holder = new Database(join(dataDir, ACTIVITY_NAME));
  onCleanup(() => holder.close());
  for (const [age, differs] of [["price"], []].entries()) {
    if (age > 0) holder.run("BEGIN IMMEDIATE");
    const lastAt = NOW + age;
    const minutes = [
      minuteOf(NOW, { stored: 1, unauthorized: 1, lastAt }),
      rejectsOf([age + 1], NOW, { lastAt }),
    ];
    const batch = { ...batchOf(...minutes), repeats: [repeatsOf("a", differs, { lastAt })] };
    expect(await free.write(batch)).toBeNull();
    expect(await activity.write(batch)).toBe(
      age > 0 ? "another process has locked the database" : null,
    );
    expect(await read(activity)).toEqual(await read(free));
  }
  holder.run("ROLLBACK");
  expect(await activity.write(batchOf())).toBeNull();
  await activity.close();
  const again = openActivity(dataDir);
  expect(await read(again.activity)).toEqual(await read(free));
  expect(again.said).toEqual([]);
});

const unusable: readonly { name: string; spoil: (path: string) => void; isKept: boolean }[] = [
  { name: "no database", spoil: (path) => writeFileSync(path, "x".repeat(5_000)), isKept: true },
  {
    name: "another version",
    spoil: (path) => {
      const db = new Database(path);
      db.run("PRAGMA user_version = 99");
      db.close();
    },
    isKept: true,
  },
  { name: "a folder", spoil: (path) => mkdirSync(path), isKept: false },
];

test.each(unusable)(
  "a file that cannot be used ($name) delays nothing and is logged",
  async ({ spoil, isKept }) => {
    const dataDir = temporaryFolder();
    spoil(join(dataDir, ACTIVITY_NAME));
    chmodSync(join(dataDir, ACTIVITY_NAME), 0o700);
    const { activity, said } = openActivity(dataDir);
    expect(said).toHaveLength(1);
    expect(said[0]).toContain(isKept ? "was replaced by an empty file" : "in memory only");
    await activity.write(batchOf(minuteOf(NOW, { stored: 1 })));
    expect(await activity.buckets(days)).toHaveLength(1);
    await activity.close();
    const again = openActivity(dataDir);
    expect(await again.activity.buckets(days)).toHaveLength(isKept ? 1 : 0);
  },
);

test("a file that has the right version and other tables is replaced by an empty one", async () => {
  const { activity, said, dataDir } = openActivity();
  const db = new Database(join(dataDir, ACTIVITY_NAME));
  db.run("DROP TABLE counts; CREATE TABLE others (id)");
  db.close();
  expect(await activity.buckets(days)).toEqual([]);
  expect(said).toEqual([expect.stringMatching(/was replaced by an empty file .*no such table/)]);
  await activity.write(batchOf(minuteOf(NOW, { stored: 1 })));
  expect(await activity.buckets(days)).toHaveLength(1);
});

test("a file that is damaged while it is open is replaced by an empty one", async () => {
  const { activity, said, dataDir } = openActivity();
  for (let index = 0; index < 5; index++) {
    const rejects = Array.from({ length: 50 }, (_, at) =>
      rejectsOf([index * 50 + at], NOW, { keyId: `key-${index * 50 + at}` }),
    );
    await activity.write(batchOf(...rejects));
  }
  await activity.close();
  const path = join(dataDir, ACTIVITY_NAME);
  const bytes = Buffer.from(readFileSync(path));
  bytes.fill(0xff, 4_096 * 2);
  writeFileSync(path, bytes);
  const again = openActivity(dataDir);
  expect(await again.activity.rejects(allRejects)).toEqual([]);
  expect(again.said).toHaveLength(1);
  await again.activity.write(batchOf(rejectsOf([1], NOW)));
  expect(await again.activity.rejects(allRejects)).toHaveLength(1);
  expect(said).toEqual([]);
});

const bucket = (start: number, signals: number) => ({
  start,
  stored: signals,
  duplicate: 50,
  rejected: 50,
});

const rateOf = (usual: Usual | null, now: number) => usual && usualRate(usual, now);

test("the usual rate is the average of the same hour on earlier days since the desk began", () => {
  const noon = Date.UTC(2026, 10, 21, 12);
  const usual = (hours: ReturnType<typeof bucket>[], now = noon) =>
    rateOf(
      usualOf(
        hours.toSorted((one, other) => one.start - other.start),
        now,
      ),
      now,
    );
  expect(usual([])).toBeNull();
  expect(usual([bucket(noon - HOUR_MS, 9), bucket(noon, 9)])).toBeNull();
  expect(usual([bucket(noon - DAY_MS, 900), bucket(noon - DAY_MS - HOUR_MS, 60)])).toBe(60);
  // A quarter past: three quarters of the hour before, and a quarter of this one.
  const yesterday = [bucket(noon - DAY_MS - HOUR_MS, 60), bucket(noon - DAY_MS, 100)];
  expect(usual(yesterday, noon + 15 * MINUTE_MS)).toBe(70);
  // An hour without requests counts as a day with none.
  const before = bucket(noon - 2 * DAY_MS - 5 * HOUR_MS, 1);
  expect(usual([before, ...yesterday])).toBe(30);
  expect(usual([{ ...before, start: noon - 3 * DAY_MS - HOUR_MS }, ...yesterday])).toBeCloseTo(
    61 / 3,
  );
});

test("the last hour is this minute and the 59 before it", async () => {
  const { activity } = openActivity();
  for (const age of [0, 59, 60])
    await activity.write(batchOf(minuteOf(NOW - age * MINUTE_MS, { stored: 1 })));
  await activity.write(batchOf(minuteOf(NOW - DAY_MS, { stored: 40 })));
  const { stored: last, usual } = await readLastHour(activity, 1, NOW);
  expect(last).toBe(2);
  // Half past: the second half of this hour of yesterday is not over.
  expect(rateOf(usual, NOW)).toBeCloseTo(40 * (30.25 / 60));
});

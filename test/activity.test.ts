/** What becomes of requests, from the recorder to the file. */
import { Database } from "bun:sqlite";
import { expect, setDefaultTimeout, test } from "bun:test";
import { mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import {
  ActivityRecorder,
  KEY_MINUTES_MAX,
  REJECTS_MAX,
} from "../src/console/activity/recorder.ts";
import { type ActivityBatch, REJECTS_KEPT, REPEATED_SIGNALS_KEPT } from "../src/domain/activity.ts";
import { AppError } from "../src/domain/errors.ts";
import { ACTIVITY_NAME, SqliteActivity } from "../src/store/sqlite/activity.ts";
import { DATABASE_NAME } from "../src/store/sqlite/folder.ts";
import { openDatabase } from "../src/store/sqlite/open.ts";
import { SqliteRegistry } from "../src/store/sqlite/registry.ts";
import { temporaryFolder, onCleanup } from "./_setup.ts";

setDefaultTimeout(30_000);

const NOW = Date.UTC(2026, 10, 21, 12, 30, 15);
const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

const owner = { keyId: "key-1", deskId: 1, deskName: "alpha" };
const mine = { deskId: 1, keyId: "key-1" };
const ofDesk = { deskId: 1, keyId: null };
const stored = { deduped: false, id: "signal" } as const;

/** Request ids that rise. */
function requestId(number: number): string {
  return `0190-${String(number).padStart(8, "0")}`;
}

/** Observes, and gives what it would have sent. */
function observed(observe: (recorder: ActivityRecorder) => void): ActivityBatch {
  const batches: ActivityBatch[] = [];
  const recorder = new ActivityRecorder();
  observe(recorder);
  recorder.start((batch) => batches.push(batch));
  recorder.stop();
  return batches[0] ?? { minutes: [], rejects: [], repeats: [] };
}

function openActivity(dataDir = temporaryFolder()): {
  activity: SqliteActivity;
  said: string[];
  dataDir: string;
} {
  const said: string[] = [];
  const activity = new SqliteActivity(dataDir, (sentence) => said.push(sentence));
  onCleanup(() => activity.close());
  return { activity, said, dataDir };
}

test("requests are counted by key and minute, by what became of them", () => {
  const { minutes } = observed((recorder) => {
    recorder.accepted(owner, NOW, stored);
    recorder.accepted(owner, NOW + 1, { deduped: true, id: "signal", differs: [] });
    recorder.rejected(owner, NOW + 2, requestId(1), new AppError("bad_request"));
    recorder.rejected(owner, NOW + 3, requestId(2), new AppError("unauthorized"));
    recorder.rejected(owner, NOW + MINUTE, requestId(3), null);
    recorder.accepted({ ...owner, keyId: "key-2" }, NOW, stored);
  });
  const start = NOW - 15_000;
  const none = { deskId: 1, keyId: "key-1", stored: 0, duplicate: 0, rejected: 0, unauthorized: 0 };
  expect(minutes).toEqual([
    { ...none, start, stored: 1, duplicate: 1, rejected: 2, unauthorized: 1, lastAt: NOW + 3 },
    { ...none, start: start + MINUTE, rejected: 1, lastAt: NOW + MINUTE },
    { ...none, keyId: "key-2", start, stored: 1, lastAt: NOW },
  ]);
});

test("a rejected request is told as it was answered, without what a client could hide in it", () => {
  const fields: Record<string, string> = Object.create(null) as Record<string, string>;
  fields["x".repeat(1_000)] = "unknown field";
  fields[`my sbk_${"0".repeat(64)}`] = "unknown field";
  fields["__proto__"] = "unknown field";
  for (let index = 0; index < 100; index++) fields[`made-up-${index}`] = "unknown field";
  fields["side"] = "required";
  const { rejects } = observed((recorder) => {
    recorder.rejected(owner, NOW, requestId(1), new AppError("validation_failed", { fields }));
    recorder.rejected(owner, NOW, requestId(2), new AppError("bad_request", { message: "No." }));
    recorder.rejected(owner, NOW, requestId(3), null);
  });
  const base = { deskId: 1, key_id: "key-1", at: NOW, fields: null, moreFields: 0 };
  const [first, second, third] = rejects;
  expect<string[][]>(Object.entries(first?.fields ?? {})).toEqual([
    ["side", "required"],
    [`${"x".repeat(100)}…`, "unknown field"],
    ["my sbk_…", "unknown field"],
    ["__proto__", "unknown field"],
    ...Array.from({ length: 6 }, (_, index) => [`made-up-${index}`, "unknown field"]),
  ]);
  expect(first).toMatchObject({
    status: 422,
    error: "validation_failed",
    message: null,
    moreFields: 94,
  });
  expect(second).toEqual({
    ...base,
    request_id: requestId(2),
    status: 400,
    error: "bad_request",
    message: "No.",
  });
  expect(third).toEqual({
    ...base,
    request_id: requestId(3),
    status: 500,
    error: "internal_error",
    message: null,
  });
});

test("what a batch holds is bounded, and of a desk's rejects it holds the newest", () => {
  const { minutes, rejects, repeats } = observed((recorder) => {
    for (let index = 0; index < 20_000; index++) {
      recorder.accepted({ ...owner, keyId: `key-${index}` }, NOW, {
        deduped: true,
        id: `signal-${index}`,
        differs: [],
      });
      recorder.rejected(owner, NOW, requestId(index), new AppError("bad_request"));
    }
    for (let deskId = 2; deskId < 20; deskId++) {
      for (let index = 0; index < 1_000; index++) {
        recorder.rejected({ ...owner, deskId }, NOW, requestId(index), new AppError("bad_request"));
      }
    }
  });
  expect(minutes).toHaveLength(KEY_MINUTES_MAX);
  expect(repeats.length).toBeLessThan(10_000);
  expect(rejects).toHaveLength(REJECTS_MAX);
  const ids = rejects.filter(({ deskId }) => deskId === 1).map(({ request_id }) => request_id);
  expect(ids.toSorted()[0]).toBe(requestId(20_000 - REJECTS_KEPT));
  // Those that are not told are counted.
  expect(minutes.find(({ keyId }) => keyId === "key-1")?.rejected).toBe(20_000 + 18 * 1_000);
});

test("nothing is sent while the batch before is not written, and nothing is lost by it", async () => {
  const batches: ActivityBatch[] = [];
  const recorder = new ActivityRecorder();
  onCleanup(() => recorder.stop());
  recorder.start((batch) => batches.push(batch));
  recorder.accepted(owner, NOW, stored);
  while (batches.length === 0) await Bun.sleep(20);
  recorder.accepted(owner, NOW, stored);
  await Bun.sleep(2_500);
  expect(batches).toHaveLength(1);
  recorder.accepted(owner, NOW, stored);
  recorder.written();
  while (batches.length === 1) await Bun.sleep(20);
  expect(batches[1]?.minutes[0]?.stored).toBe(2);
});

function minute(
  start: number,
  counts: Partial<ActivityBatch["minutes"][number]> = {},
): ActivityBatch {
  const none = { stored: 0, duplicate: 0, rejected: 0, unauthorized: 0 };
  const base = { deskId: 1, keyId: "key-1", start, ...none, lastAt: start };
  return { minutes: [{ ...base, ...counts }], rejects: [], repeats: [] };
}

function reject(number: number, deskId = 1, keyId = "key-1"): ActivityBatch["rejects"][number] {
  return {
    deskId,
    key_id: keyId,
    request_id: requestId(number),
    at: NOW + number,
    status: 422,
    error: "validation_failed",
    message: null,
    fields: { side: "required" },
    moreFields: 0,
  };
}

test("buckets add up, and are of one desk, and of one key where it is named", () => {
  const { activity } = openActivity();
  const start = NOW - (NOW % MINUTE);
  activity.write(minute(start, { stored: 3, lastAt: start + 5 }));
  activity.write(
    minute(start, { stored: 1, duplicate: 2, rejected: 4, unauthorized: 1, lastAt: start + 9 }),
  );
  activity.write(minute(start - HOUR, { stored: 5 }));
  activity.write(minute(start, { keyId: "key-2", stored: 100 }));
  activity.write(minute(start, { deskId: 2, stored: 1_000 }));
  expect(activity.buckets(mine, "minute", start)).toEqual([
    { start, stored: 4, duplicate: 2, rejected: 4 },
  ]);
  expect(activity.buckets(mine, "hour", start - HOUR).map((bucket) => bucket.stored)).toEqual([
    5, 4,
  ]);
  expect(activity.buckets(mine, "day", start)).toEqual([
    { start: start - (start % DAY), stored: 9, duplicate: 2, rejected: 4 },
  ]);
  expect(activity.buckets(ofDesk, "minute", start).map(({ stored: n }) => n)).toEqual([104]);
  const first = { requests: 10, rejected: 4, unauthorized: 1, lastAt: start + 9 };
  const second = { requests: 100, rejected: 0, unauthorized: 0, lastAt: start };
  expect(activity.ofKeys(1, ["key-1", "key-2", "key-3"], start)).toEqual(
    new Map([
      ["key-1", first],
      ["key-2", second],
    ]),
  );
  expect(activity.ofKeys(1, ["key-2"], start)).toEqual(new Map([["key-2", second]]));
  expect(activity.ofKeys(2, ["key-2"], start)).toEqual(new Map());
});

test("the keys that have ended and are still sent with are found, the latest first, and so many", () => {
  const { activity } = openActivity();
  const start = NOW - (NOW % MINUTE);
  for (const number of [2, 3, 1]) {
    const knock = { keyId: `key-${number}`, rejected: 1, unauthorized: 1, lastAt: start + number };
    activity.write(minute(start, knock));
  }
  activity.write(minute(start, { keyId: "key-4", rejected: 9, lastAt: start + 9 }));
  activity.write(minute(start, { deskId: 2, keyId: "key-5", rejected: 1, unauthorized: 1 }));
  activity.write(minute(start - DAY, { keyId: "key-6", rejected: 1, unauthorized: 1 }));
  expect(activity.keysStillInUse(1, start, 10)).toEqual(["key-3", "key-2", "key-1"]);
  expect(activity.keysStillInUse(1, start, 2)).toEqual(["key-3", "key-2"]);
});

test("what was sent with keys of another database is dropped", () => {
  const { activity, said, dataDir } = openActivity();
  const db = openDatabase(dataDir, "command");
  onCleanup(() => db.close());
  const registry = new SqliteRegistry(db);
  const keys = ["alpha", "beta"].map((desk) => {
    registry.createDesk(desk, { ifMissing: false });
    return registry.mintKey({ desk, label: null, expiresInMs: null }).record.id;
  });
  const [ours = "", theirs = ""] = keys;
  for (const keyId of [ours, theirs, "gone"]) {
    activity.write(minute(NOW, { keyId, stored: 1 }));
    activity.write({
      minutes: [],
      rejects: [reject(keys.indexOf(keyId) + 5, 1, keyId)],
      repeats: [],
    });
  }
  activity.keepKeysOf(join(dataDir, DATABASE_NAME));
  expect(said).toEqual([]);
  expect(activity.buckets(ofDesk, "day", 0).map(({ stored: n }) => n)).toEqual([1]);
  expect(activity.rejects(ofDesk, null, 10).map(({ key_id }) => key_id)).toEqual([ours]);
  expect(said).toEqual([]);
});

test("activity is kept, with a warning, when the keys cannot be read", () => {
  const { activity, said, dataDir } = openActivity();
  activity.write(minute(NOW, { stored: 1 }));
  const damaged = join(dataDir, "damaged.db");
  writeFileSync(damaged, "not a database".repeat(1_000));
  const locked = join(dataDir, "locked.db");
  const holder = new Database(locked);
  onCleanup(() => holder.close());
  holder.run("CREATE TABLE api_keys (id TEXT, desk_id INTEGER)");
  holder.run("BEGIN EXCLUSIVE");
  for (const path of [join(dataDir, "nothing.db"), damaged, locked]) {
    activity.keepKeysOf(path);
    expect(said.splice(0).join()).toContain("was not dropped");
    expect(activity.buckets(ofDesk, "day", 0)).toHaveLength(1);
  }
});

test("activity is kept, with a warning, when its file is locked", () => {
  const { activity, said, dataDir } = openActivity();
  openDatabase(dataDir, "command").close();
  activity.write(minute(NOW, { stored: 1 }));
  const holder = new Database(join(dataDir, ACTIVITY_NAME));
  onCleanup(() => holder.close());
  holder.run("BEGIN IMMEDIATE");
  activity.keepKeysOf(join(dataDir, DATABASE_NAME));
  holder.run("ROLLBACK");
  expect(said.join()).toContain("was not dropped");
  expect(activity.buckets(ofDesk, "day", 0)).toHaveLength(1);
});

test("each width keeps as many buckets as it shows", () => {
  const { activity, dataDir } = openActivity();
  const start = NOW - (NOW % MINUTE);
  for (let age = 400; age >= 0; age--) activity.write(minute(start - age * MINUTE, { stored: 1 }));
  for (let age = 200; age >= 0; age--) activity.write(minute(start - age * HOUR, { stored: 1 }));
  for (let age = 100; age >= 0; age--) activity.write(minute(start - age * DAY, { stored: 1 }));
  expect(activity.buckets(mine, "minute", 0)).toHaveLength(180);
  expect(activity.buckets(mine, "hour", 0)).toHaveLength(168);
  expect(activity.buckets(mine, "day", 0)).toHaveLength(90);
  const db = new Database(join(dataDir, ACTIVITY_NAME), { readonly: true });
  expect(db.query("SELECT count(*) AS n FROM buckets").get()).toEqual({ n: 180 + 168 + 90 });
  db.close();
});

test("the newest rejects of a desk are kept, and read in pages", () => {
  const { activity } = openActivity();
  const rejects = Array.from({ length: REJECTS_KEPT + 300 }, (_, index) => reject(index));
  const others = [reject(7, 2), reject(999_999, 1, "key-2")];
  activity.write({ minutes: [], rejects: [...rejects, ...others], repeats: [] });
  const first = activity.rejects(mine, null, 600);
  const second = activity.rejects(mine, first.at(-1)?.request_id ?? null, 600);
  const ids = [...first, ...second].map(({ request_id }) => request_id);
  // One of the places is taken by the other key of the desk.
  const newest = rejects.slice(-(REJECTS_KEPT - 1)).map(({ request_id }) => request_id);
  expect(ids).toEqual(newest.toReversed());
  const { deskId: _, ...last } = reject(REJECTS_KEPT + 299);
  expect(first[0]).toEqual(last);
  expect(activity.rejects({ deskId: 2, keyId: null }, null, 10)).toHaveLength(1);
});

test("duplicates of a signal add up; the newest signals that have any are kept", () => {
  const { activity } = openActivity();
  const repeats = (signalId: string, differs: string[], lastAt = NOW) => ({
    deskId: 1,
    signalId,
    duplicates: 2,
    differing: differs.length === 0 ? 0 : 1,
    differs,
    lastAt,
  });
  const write = (...batch: ActivityBatch["repeats"][number][]) =>
    activity.write({ minutes: [], rejects: [], repeats: batch });
  write(repeats("0", []), repeats("signal", ["price"]));
  write(repeats("signal", ["side", "price"], NOW + 5));
  write(repeats("signal", [], NOW + 1));
  expect(activity.repeatsOf(1, "signal")).toEqual({
    duplicates: 6,
    differing: 2,
    differs: ["price", "side"],
    lastAt: NOW + 5,
  });
  expect(activity.repeatsOf(2, "signal")).toBeNull();
  expect(activity.repeatsOf(1, "another")).toBeNull();
  expect(activity.repeatsOf(1, "0")?.duplicates).toBe(2);
  const many = Array.from({ length: REPEATED_SIGNALS_KEPT }, (_, index) =>
    repeats(`1${index}`, []),
  );
  write(...many);
  expect(activity.repeatsOf(1, "0")).toBeNull();
  expect(activity.repeatsOf(1, "signal")).not.toBeNull();
});

test("it lasts, and nobody else can read it", () => {
  const dataDir = temporaryFolder();
  const before = new SqliteActivity(dataDir, () => {});
  before.write(minute(NOW, { stored: 1 }));
  for (const name of readdirSync(dataDir)) {
    expect(`${name} ${(statSync(join(dataDir, name)).mode & 0o777).toString(8)}`).toBe(
      `${name} 600`,
    );
  }
  before.close();
  const { activity, said } = openActivity(dataDir);
  expect(activity.buckets(mine, "day", 0)).toHaveLength(1);
  expect(said).toEqual([]);
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
  "a file that cannot be used ($name) holds nothing up, and is told of",
  ({ spoil, isKept }) => {
    const dataDir = temporaryFolder();
    spoil(join(dataDir, ACTIVITY_NAME));
    const { activity, said } = openActivity(dataDir);
    expect(said).toHaveLength(1);
    expect(said[0]).toContain(isKept ? "was replaced by an empty file" : "is kept in memory alone");
    activity.write(minute(NOW, { stored: 1 }));
    expect(activity.buckets(mine, "day", 0)).toHaveLength(1);
    activity.close();
    const again = openActivity(dataDir);
    expect(again.activity.buckets(mine, "day", 0)).toHaveLength(isKept ? 1 : 0);
  },
);

test("a file that is damaged while it is open is replaced by an empty one", () => {
  const { activity, said, dataDir } = openActivity();
  for (let index = 0; index < 5; index++) {
    const rejects = Array.from({ length: 100 }, (_, at) => reject(index * 100 + at));
    activity.write({ minutes: [], rejects, repeats: [] });
  }
  activity.close();
  const path = join(dataDir, ACTIVITY_NAME);
  const bytes = Buffer.from(readFileSync(path));
  bytes.fill(0xff, 4_096 * 2);
  writeFileSync(path, bytes);
  const again = openActivity(dataDir);
  expect(again.activity.rejects(mine, null, 1_000)).toEqual([]);
  expect(again.said).toHaveLength(1);
  again.activity.write({ minutes: [], rejects: [reject(1)], repeats: [] });
  expect(again.activity.rejects(mine, null, 10)).toHaveLength(1);
  expect(said).toEqual([]);
});

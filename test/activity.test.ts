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
import { type ActivityBatch, REJECTS_KEPT } from "../src/domain/activity.ts";
import { AppError } from "../src/domain/errors.ts";
import { ACTIVITY_NAME, SqliteActivity } from "../src/store/sqlite/activity.ts";
import { openDatabase } from "../src/store/sqlite/open.ts";
import { SqliteRegistry } from "../src/store/sqlite/registry.ts";
import { temporaryFolder, onCleanup } from "./_setup.ts";

setDefaultTimeout(30_000);

const NOW = Date.UTC(2026, 10, 21, 12, 30, 15);
const MINUTE = 60_000;

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
  activity.keepKeysOf(db);
  expect(activity.buckets(ofDesk, "day", 0).map(({ stored: n }) => n)).toEqual([1]);
  expect(activity.rejects(ofDesk, null, 10).map(({ key_id }) => key_id)).toEqual([ours]);
  expect(said).toEqual([]);
});

test("activity is kept, with a warning, when the keys cannot be read or its file is locked", () => {
  const { activity, said, dataDir } = openActivity();
  activity.write(minute(NOW, { stored: 1 }));
  const unreadable = new Database(":memory:");
  onCleanup(() => unreadable.close());
  activity.keepKeysOf(unreadable);
  const holder = new Database(join(dataDir, ACTIVITY_NAME));
  onCleanup(() => holder.close());
  holder.run("BEGIN IMMEDIATE");
  const db = openDatabase(dataDir, "command");
  onCleanup(() => db.close());
  activity.keepKeysOf(db);
  holder.run("ROLLBACK");
  expect(said).toEqual(Array(2).fill(expect.stringContaining("was not dropped")));
  expect(activity.buckets(ofDesk, "day", 0)).toHaveLength(1);
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
    expect(said[0]).toContain(isKept ? "was replaced by an empty file" : "is kept in memory only");
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

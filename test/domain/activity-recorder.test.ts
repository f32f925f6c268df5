/** What becomes of requests, until it is written. */
import { expect, test } from "bun:test";
import { ActivityRecorder, KEY_MINUTES_MAX } from "../../src/console/pages/activity/recorder.ts";
import { REASONS_MAX } from "../../src/console/pages/activity/reject-recorder.ts";
import {
  type Acceptance,
  type ActivityBatch,
  REJECT_REASONS_KEPT,
  REJECT_REASONS_PER_KEY_KEPT,
  REQUESTS_PER_REASON_KEPT,
} from "../../src/domain/activity/activity.ts";
import { AppError } from "../../src/domain/errors.ts";
import type { Appended } from "../../src/domain/storage/append.ts";
import { MINUTE_MS } from "../../src/lib/text/time.ts";
import { requestIdOf } from "./_activity.ts";
import { onCleanup } from "../kit/setup.ts";

const NOW = Date.UTC(2026, 10, 21, 12, 30, 15);

const owner = { keyId: "key-1", deskId: 1, deskName: "alpha" };
const stored = accepted(NOW, { deduped: false, id: "signal" });

function accepted(receivedAt: number, appended: Appended): Acceptance {
  return { receivedAt, signalTime: null, appended, durationMs: 1 };
}

/** Observes, and gives what it would have sent. */
function observed(observe: (recorder: ActivityRecorder) => void): ActivityBatch {
  const batches: ActivityBatch[] = [];
  const recorder = new ActivityRecorder();
  observe(recorder);
  recorder.start((batch) => batches.push(batch));
  recorder.stop();
  return batches[0] ?? { minutes: [], rejects: [], repeats: [], differing: [] };
}

test("requests are counted per key and minute by outcome", () => {
  const { minutes } = observed((recorder) => {
    recorder.accepted(owner, stored);
    recorder.accepted(owner, accepted(NOW + 1, { deduped: true, id: "signal", differs: [] }));
    recorder.rejected(owner, NOW + 2, requestIdOf(1), new AppError("bad_request"));
    recorder.rejected(owner, NOW + 3, requestIdOf(2), new AppError("unauthorized"));
    recorder.rejected(owner, NOW + MINUTE_MS, requestIdOf(3), null);
    recorder.accepted({ ...owner, keyId: "key-2" }, stored);
  });
  const start = NOW - 15_000;
  const none = { deskId: 1, keyId: "key-1", stored: 0, duplicate: 0, rejected: 0, unauthorized: 0 };
  expect(minutes).toEqual([
    { ...none, start, stored: 1, duplicate: 1, rejected: 2, unauthorized: 1, lastAt: NOW + 3 },
    { ...none, start: start + MINUTE_MS, rejected: 1, lastAt: NOW + MINUTE_MS },
    { ...none, keyId: "key-2", start, stored: 1, lastAt: NOW },
  ]);
});

test("a rejected request is recorded as it was answered, without text that a client made up", () => {
  const fields: Record<string, string> = Object.create(null) as Record<string, string>;
  fields["x".repeat(1_000)] = "unknown field";
  fields[`my sbk_${"0".repeat(64)}`] = "unknown field";
  fields["__proto__"] = "unknown field";
  for (let index = 0; index < 100; index++) fields[`made-up-${index}`] = "unknown field";
  fields["side"] = "required";
  const { rejects } = observed((recorder) => {
    const detail = { fields, unlistedFields: 1_000 };
    recorder.rejected(owner, NOW, requestIdOf(1), new AppError("validation_failed", detail));
    recorder.rejected(owner, NOW, requestIdOf(2), new AppError("bad_request", { message: "No." }));
    recorder.rejected(owner, NOW, requestIdOf(3), null);
  });
  const [first, second, third] = rejects;
  const { fields: told, ...reason } = first?.reason ?? {};
  expect<string[][]>(Object.entries(told ?? {})).toEqual([
    ["side", "required"],
    [`${"x".repeat(100)}…`, "unknown field"],
    ["my sbk_…", "unknown field"],
    ["__proto__", "unknown field"],
    ...Array.from({ length: 6 }, (_, index) => [`made-up-${index}`, "unknown field"]),
  ]);
  expect(reason).toEqual({ status: 422, error: "validation_failed", moreFields: 1_094 });
  const latest = (number: number, message: string | null) => [
    { request_id: requestIdOf(number), at: NOW, message },
  ];
  expect(first?.latest).toEqual(latest(1, null));
  const base = { deskId: 1, keyId: "key-1", count: 1, firstAt: NOW, lastAt: NOW };
  const none = { fields: null, moreFields: 0 };
  expect(second).toEqual({
    ...base,
    reason: { status: 400, error: "bad_request", ...none },
    latest: latest(2, "No."),
  });
  expect(third).toEqual({
    ...base,
    reason: { status: 500, error: "internal_error", ...none },
    latest: latest(3, null),
  });
});

const unknownField = (name: string) =>
  new AppError("validation_failed", { fields: { [name]: "unknown field" } });

test("a flood of one reason is counted in full and displaces no other reason", () => {
  const { rejects } = observed((recorder) => {
    recorder.rejected(owner, NOW, requestIdOf(0), unknownField("sied"));
    for (let number = 1; number <= 13_000; number++) {
      recorder.rejected(owner, NOW + number, requestIdOf(number), new AppError("rate_limited"));
    }
  });
  const [lonely, flood, ...others] = rejects;
  expect(others).toEqual([]);
  expect(lonely).toMatchObject({ count: 1, reason: { fields: { sied: "unknown field" } } });
  expect(flood).toMatchObject({ count: 13_000, firstAt: NOW + 1, lastAt: NOW + 13_000 });
  const ids = flood?.latest.map(({ request_id }) => request_id).toSorted();
  const first = 13_001 - REQUESTS_PER_REASON_KEPT;
  expect(ids).toEqual(
    Array.from({ length: REQUESTS_PER_REASON_KEPT }, (_, index) => requestIdOf(first + index)),
  );
});

test("a batch is bounded; a desk's least recent reasons are dropped first", () => {
  const { minutes, rejects, repeats } = observed((recorder) => {
    for (let index = 0; index < 20_000; index++) {
      recorder.accepted(
        { ...owner, keyId: `key-${index}` },
        accepted(NOW, { deduped: true, id: `signal-${index}`, differs: [] }),
      );
      const other = { ...owner, keyId: `key-${index % 10}` };
      recorder.rejected(other, NOW, requestIdOf(2 * index), unknownField(`made-up-${index}`));
      recorder.rejected(owner, NOW, requestIdOf(2 * index + 1), new AppError("rate_limited"));
    }
    for (let deskId = 2; deskId < 20; deskId++) {
      for (let index = 0; index < 1_000; index++) {
        const other = { ...owner, deskId, keyId: `key-${index % 10}` };
        recorder.rejected(other, NOW, requestIdOf(index), unknownField(`${index}`));
      }
    }
  });
  expect(minutes).toHaveLength(KEY_MINUTES_MAX);
  expect(repeats.length).toBeLessThan(10_000);
  expect(rejects).toHaveLength(REASONS_MAX);
  const ours = rejects.filter(({ deskId }) => deskId === 1);
  expect(ours).toHaveLength(REJECT_REASONS_KEPT);
  expect(ours.at(-1)).toMatchObject({ reason: { error: "rate_limited" }, count: 20_000 });
  expect(Object.keys(ours[0]?.reason.fields ?? {})).toEqual([
    `made-up-${20_000 - REJECT_REASONS_KEPT + 1}`,
  ]);
  // Those that are not described are counted.
  const rejected = minutes.reduce((sum, minute) => sum + minute.rejected, 0);
  expect(rejected).toBe(2 * 20_000 + 18 * 1_000);
});

test("a key that invents field names displaces no other key's reasons", () => {
  const { rejects } = observed((recorder) => {
    recorder.rejected({ ...owner, keyId: "quiet" }, NOW, requestIdOf(0), unknownField("sied"));
    for (let number = 1; number <= REJECT_REASONS_KEPT; number++) {
      recorder.rejected(owner, NOW, requestIdOf(number), unknownField(`made-up-${number}`));
    }
  });
  expect(rejects.filter(({ keyId }) => keyId === "quiet")).toHaveLength(1);
  const noisy = rejects.filter(({ keyId }) => keyId !== "quiet");
  expect(noisy).toHaveLength(REJECT_REASONS_PER_KEY_KEPT);
  expect(noisy.at(-1)?.reason.fields).toEqual({
    [`made-up-${REJECT_REASONS_KEPT}`]: "unknown field",
  });
});

test("the next batch waits until the previous one is written, and loses nothing", async () => {
  const batches: ActivityBatch[] = [];
  const recorder = new ActivityRecorder();
  onCleanup(() => recorder.stop());
  recorder.start((batch) => batches.push(batch));
  recorder.accepted(owner, stored);
  while (batches.length === 0) await Bun.sleep(20);
  recorder.accepted(owner, stored);
  await Bun.sleep(2_500);
  expect(batches).toHaveLength(1);
  recorder.accepted(owner, stored);
  recorder.written();
  while (batches.length === 1) await Bun.sleep(20);
  expect(batches[1]?.minutes[0]?.stored).toBe(2);
});

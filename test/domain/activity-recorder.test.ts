/** What becomes of requests, until it is written. */
import { expect, test } from "bun:test";
import {
  ActivityRecorder,
  GROUPS_MAX,
  REASONS_MAX,
  SENT_MAX,
} from "../../src/console/pages/activity/recorder.ts";
import {
  type Acceptance,
  type ActivityBatch,
  REJECT_REASONS_PER_KEY_KEPT,
  REQUESTS_PER_REASON_KEPT,
} from "../../src/domain/activity/activity.ts";
import {
  DIFFERING_PER_SIGNAL_KEPT,
  REJECTED_KEPT,
  SENT_BYTES_MAX,
} from "../../src/domain/activity/sent.ts";
import { AppError } from "../../src/domain/errors.ts";
import type { Appended } from "../../src/domain/storage/append.ts";
import { MINUTE_MS } from "../../src/lib/text/time.ts";
import { emptySignal } from "../store/_signal.ts";
import { batchOf, requestIdOf } from "./_activity.ts";
import { onCleanup } from "../kit/setup.ts";

const NOW = Date.UTC(2026, 10, 21, 12, 30, 15);

/** Its body was not read. */
const bodyless = { body: null };

const owner = { keyId: "key-1", deskId: 1, deskName: "alpha" };
const stored = accepted(NOW, { deduped: false, id: "signal" });

function accepted(receivedAt: number, appended: Appended): Acceptance {
  const sent = { requestId: requestIdOf(0), signal: emptySignal };
  return { ...sent, receivedAt, appended, durationMs: 1 };
}

/** Observes, and gives what it would have sent. */
function observed(observe: (recorder: ActivityRecorder) => void): ActivityBatch {
  const batches: ActivityBatch[] = [];
  const recorder = new ActivityRecorder();
  observe(recorder);
  recorder.start((batch) => batches.push(batch));
  recorder.stop();
  return batches[0] ?? batchOf();
}

/** The reasons of a key, in the order in which they were first seen. */
function reasonsOf({ minutes }: ActivityBatch, keyId = "key-1") {
  return minutes
    .filter((minute) => minute.keyId === keyId)
    .flatMap(({ rejects }) => [...rejects.values()]);
}

test("requests are counted per key and minute by outcome", () => {
  const { minutes } = observed((recorder) => {
    recorder.accepted(owner, stored);
    recorder.accepted(owner, accepted(NOW + 1, { deduped: true, id: "signal", differs: [] }));
    recorder.rejected(owner, NOW + 2, requestIdOf(1), new AppError("bad_request"), bodyless);
    recorder.rejected(owner, NOW + 3, requestIdOf(2), new AppError("unauthorized"), bodyless);
    recorder.rejected(owner, NOW + MINUTE_MS, requestIdOf(3), null, bodyless);
    recorder.accepted({ ...owner, keyId: "key-2" }, stored);
  });
  const start = NOW - 15_000;
  const none = { deskId: 1, keyId: "key-1", stored: 0, duplicate: 0, rejected: 0, unauthorized: 0 };
  expect(minutes).toMatchObject([
    { ...none, start, stored: 1, duplicate: 1, rejected: 2, unauthorized: 1, lastAt: NOW + 3 },
    { ...none, start: start + MINUTE_MS, rejected: 1, lastAt: NOW + MINUTE_MS },
    { ...none, keyId: "key-2", start, stored: 1, lastAt: NOW },
  ]);
});

test("duplicates are counted per signal and key, with the fields in which they differed", () => {
  const { repeats } = observed((recorder) => {
    const repeat = (at: number, differs: ("price" | "side")[], keyId = "key-1") =>
      recorder.accepted(
        { ...owner, keyId },
        accepted(at, { deduped: true, id: "signal", differs }),
      );
    repeat(NOW, ["price"]);
    repeat(NOW + 2, []);
    repeat(NOW + 1, ["side", "price"]);
    repeat(NOW, [], "key-2");
  });
  const none = { deskId: 1, signalId: "signal", differing: 0, differs: [], differedAt: 0 };
  const differing = { differing: 2, differs: ["price", "side"], differedAt: NOW + 1 };
  expect<readonly object[]>(repeats).toEqual([
    { ...none, ...differing, keyId: "key-1", duplicates: 3, lastAt: NOW + 2 },
    { ...none, keyId: "key-2", duplicates: 1, lastAt: NOW },
  ]);
});

const latest = (number: number, message: string | null) => [
  { request_id: requestIdOf(number), at: NOW, message },
];

test("a rejected request is recorded as it was answered, without text that a client made up", () => {
  const fields: Record<string, string> = Object.create(null) as Record<string, string>;
  fields["x".repeat(1_000)] = "unknown field";
  fields[`my sbk_${"0".repeat(64)}`] = "unknown field";
  fields["__proto__"] = "unknown field";
  for (let index = 0; index < 100; index++) fields[`made-up-${index}`] = "unknown field";
  fields["side"] = "required";
  const batch = observed((recorder) => {
    const detail = { fields, unlistedFields: 1_000 };
    recorder.rejected(
      owner,
      NOW,
      requestIdOf(1),
      new AppError("validation_failed", detail),
      bodyless,
    );
    recorder.rejected(
      owner,
      NOW,
      requestIdOf(2),
      new AppError("bad_request", { message: "No." }),
      bodyless,
    );
    recorder.rejected(owner, NOW, requestIdOf(3), null, bodyless);
  });
  const [first, ...others] = reasonsOf(batch);
  const { fields: told, ...reason } = first?.reason ?? {};
  expect<string[][]>(Object.entries(told ?? {})).toEqual([
    ["side", "required"],
    [`${"x".repeat(100)}…`, "unknown field"],
    ["my sbk_…", "unknown field"],
    ["__proto__", "unknown field"],
    ...Array.from({ length: 6 }, (_, index) => [`made-up-${index}`, "unknown field"]),
  ]);
  expect(reason).toEqual({ status: 422, error: "validation_failed", moreFields: 1_094 });
  expect(first?.latest).toEqual(latest(1, null));
  const none = { fields: null, moreFields: 0 };
  expect(others).toEqual([
    {
      count: 1,
      reason: { status: 400, error: "bad_request", ...none },
      latest: latest(2, "No."),
    },
    {
      count: 1,
      reason: { status: 500, error: "internal_error", ...none },
      latest: latest(3, null),
    },
  ]);
});

const unknownField = (name: string) =>
  new AppError("validation_failed", { fields: { [name]: "unknown field" } });

test("a flood of one reason is counted in full and displaces no other reason", () => {
  const batch = observed((recorder) => {
    recorder.rejected(owner, NOW, requestIdOf(0), unknownField("sied"), bodyless);
    for (let number = 1; number <= 13_000; number++) {
      recorder.rejected(owner, NOW, requestIdOf(number), new AppError("rate_limited"), bodyless);
    }
  });
  const [lonely, flood, ...others] = reasonsOf(batch);
  expect(others).toEqual([]);
  expect(lonely).toMatchObject({ count: 1, reason: { fields: { sied: "unknown field" } } });
  expect(flood).toMatchObject({ count: 13_000 });
  const ids = flood?.latest.map(({ request_id }) => request_id).toSorted();
  const first = 13_001 - REQUESTS_PER_REASON_KEPT;
  expect(ids).toEqual([
    requestIdOf(1),
    ...Array.from({ length: REQUESTS_PER_REASON_KEPT }, (_, index) => requestIdOf(first + index)),
  ]);
});

test("a batch is bounded", () => {
  const { minutes, repeats } = observed((recorder) => {
    for (let index = 0; index < 2 * GROUPS_MAX; index++) {
      const key = { ...owner, keyId: `key-${index % 1_000}` };
      const once = { ...owner, keyId: `once-${index}` };
      recorder.rejected(key, NOW, requestIdOf(index), unknownField(`made-up-${index}`), bodyless);
      const repeated = { deduped: true, id: `signal-${index}`, differs: [] } as const;
      recorder.accepted(once, accepted(NOW, repeated));
    }
  });
  expect(minutes).toHaveLength(GROUPS_MAX);
  expect(repeats).toHaveLength(GROUPS_MAX);
  const described = minutes.reduce((sum, { rejects }) => sum + rejects.size, 0);
  expect(described).toBe(REASONS_MAX);
  // Those that are not described are counted.
  expect(minutes.reduce((sum, { rejected }) => sum + rejected, 0)).toBe(2 * GROUPS_MAX);
});

test("a key that invents field names displaces no other key's reasons", () => {
  const batch = observed((recorder) => {
    for (let number = 1; number <= 2 * REJECT_REASONS_PER_KEY_KEPT; number++) {
      recorder.rejected(
        owner,
        NOW,
        requestIdOf(number),
        unknownField(`made-up-${number}`),
        bodyless,
      );
    }
    recorder.rejected(
      { ...owner, keyId: "quiet" },
      NOW,
      requestIdOf(0),
      unknownField("sied"),
      bodyless,
    );
  });
  expect(reasonsOf(batch, "quiet")).toHaveLength(1);
  expect(reasonsOf(batch)).toHaveLength(REJECT_REASONS_PER_KEY_KEPT);
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

const invalid = new AppError("validation_failed", { fields: { side: "required" } });

test("of rejected bodies the start of the latest per desk is kept, as a copy; of 5xx and unread ones nothing", () => {
  const body = Buffer.alloc(65_536, "x");
  const { bodies, minutes } = observed((recorder) => {
    const reject = (number: number, error = invalid, deskId = 1, sent: Uint8Array | null = body) =>
      recorder.rejected(
        { ...owner, deskId, keyId: `key-${deskId}` },
        NOW,
        requestIdOf(number),
        error,
        { body: sent },
      );
    reject(0, invalid, 2);
    for (let number = 1; number <= 3 * REJECTED_KEPT; number += 1) reject(number);
    reject(9_999, new AppError("unavailable"), 3);
    reject(9_999, new AppError("rate_limited"), 3, null);
  });
  expect(bodies.filter(({ deskId }) => deskId === 2)).toMatchObject([
    { requestId: requestIdOf(0) },
  ]);
  const own = bodies.filter(({ deskId }) => deskId === 1);
  expect(own.map(({ requestId }) => requestId).toSorted()).toEqual(
    Array.from({ length: REJECTED_KEPT }, (_, index) => requestIdOf(2 * REJECTED_KEPT + 1 + index)),
  );
  expect(bodies).toHaveLength(REJECTED_KEPT + 1);
  for (const { start, bytes } of bodies) {
    expect([start.buffer.byteLength, bytes]).toEqual([SENT_BYTES_MAX, 65_536]);
  }
  expect(minutes.reduce((sum, { rejected }) => sum + rejected, 0)).toBe(3 * REJECTED_KEPT + 3);
});

test("bodies and values are bounded over all desks and signals", () => {
  const { bodies, values } = observed((recorder) => {
    for (let number = 0; number < 2 * SENT_MAX; number += 1) {
      const one = { ...owner, deskId: number, keyId: `key-${number}` };
      recorder.rejected(one, NOW, requestIdOf(number), invalid, { body: Buffer.from("{}") });
      recorder.accepted(
        one,
        accepted(NOW, { deduped: true, id: `s${number}`, differs: ["price"] }),
      );
    }
  });
  expect([bodies.length, values.length]).toEqual([SENT_MAX, SENT_MAX]);
});

test("of duplicates that differ the values of the fields that differ are kept, the latest per signal", () => {
  const signal = { ...emptySignal, price: 5, metadata: `{"a":"${"x".repeat(60_000)}"}` };
  const { values } = observed((recorder) => {
    const repeat = (id: string, differs: ("price" | "metadata")[]) =>
      recorder.accepted(owner, { ...accepted(NOW, { deduped: true, id, differs }), signal });
    repeat("same", []);
    repeat("once", ["price", "metadata"]);
    for (let number = 0; number < 100; number += 1) repeat("often", ["price"]);
  });
  const [once, ...often] = values;
  expect(once).toMatchObject({ signalId: "once", keyId: "key-1", at: NOW, values: { price: 5 } });
  expect(once?.values.metadata).toHaveLength(SENT_BYTES_MAX + 1);
  expect(often).toHaveLength(DIFFERING_PER_SIGNAL_KEPT);
  for (const { values: sent } of often) expect(sent).toEqual({ price: 5 });
});

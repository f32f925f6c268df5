/** From a request to the activity of its desk, through both threads. */
import { Database } from "bun:sqlite";
import { expect, test } from "bun:test";
import { join } from "node:path";
import {
  ACTIVITY_NAME,
  type ActivityFile,
  openActivity as openActivityFile,
} from "../../../src/store/sqlite/side/activity.ts";
import { mintKey, onCleanup, signal } from "../../kit/setup.ts";
import { deskIdOf, lookUntil, reasonsIn, totals } from "./_activity-page.ts";
import { startConsole, startSignedIn, type TestConsole } from "../_console.ts";

/** What is in the file once the server has stopped. */
function readActivity({ dataDir }: TestConsole): ActivityFile {
  const activity = openActivityFile(dataDir, (sentence) => {
    throw new Error(sentence);
  });
  onCleanup(() => activity.close());
  return activity;
}

test("every outcome of a request with a known key is recorded before the server stops", async () => {
  const desk = await startConsole({ config: { rateLimitPerS: 6 } });
  const revoked = await mintKey(desk.registry, "alpha");
  await desk.registry.revokeKey(revoked.keyId);
  const expired = await mintKey(desk.registry, "alpha", { expiresInMs: 1 });
  const first = await desk.post({ ...signal, client_signal_id: "one", price: 1 });
  expect(first.status).toBe(201);
  const requests: readonly [
    name: string,
    status: number,
    body: unknown,
    headers: Record<string, string>,
  ][] = [
    ["again", 200, { ...signal, client_signal_id: "one", price: 1 }, {}],
    ["differing", 200, { ...signal, client_signal_id: "one", price: 2 }, {}],
    ["not JSON", 400, "{", {}],
    ["revoked", 401, signal, { Authorization: `Bearer ${revoked.key}` }],
    ["expired", 401, signal, { Authorization: `Bearer ${expired.key}` }],
    ["nobody's", 401, signal, { Authorization: `Bearer sbk_${"0".repeat(64)}` }],
    ["no JSON by its type", 415, signal, { "Content-Type": "text/plain" }],
    ["too large", 413, "x".repeat(70_000), {}],
    ["no side", 422, { ...signal, side: undefined }, {}],
  ];
  for (const [name, status, body, headers] of requests) {
    const answer = await desk.post(body, headers);
    expect(`${name}: ${answer.status}`).toBe(`${name}: ${status}`);
  }
  let malformed = 1;
  while ((await desk.post("{")).status === 400) malformed += 1;
  await desk.stop();

  const activity = readActivity(desk);
  const deskId = deskIdOf(desk);
  const read = { deskId, width: "day", from: 0 } as const;
  const rejects = await activity.rejects({ deskId, since: read, limit: 100 });
  const oldest = rejects.toReversed();
  expect(oldest.map(({ status, error, count }) => `${status} ${error} ${count}`)).toEqual([
    "401 unauthorized 2",
    "415 unsupported_media_type 1",
    "413 payload_too_large 1",
    "422 validation_failed 1",
    `400 bad_request ${malformed}`,
    "429 rate_limited 1",
  ]);
  expect(oldest[0]?.keyIds).toEqual([expired.keyId, revoked.keyId]);
  expect(oldest[3]?.fields).toEqual({ side: "required" });
  const rejected = rejects.reduce((sum, { count }) => sum + count, 0);
  const days = await activity.buckets({ ...read, keyIds: null });
  const sum = (name: "stored" | "duplicate" | "rejected") =>
    days.reduce((total, bucket) => total + bucket[name], 0);
  expect([sum("stored"), sum("duplicate"), sum("rejected")]).toEqual([1, 2, rejected]);
  expect(await activity.buckets({ ...read, keyIds: [revoked.keyId] })).toMatchObject([
    { stored: 0, duplicate: 0, rejected: 1, unauthorized: 1 },
  ]);
  const signalId = String(first.body["id"]);
  expect(await activity.differing({ deskId, before: null, limit: 10 })).toMatchObject([
    { signalId, keyId: desk.keyId, duplicates: 2, differing: 1, differs: ["price"] },
  ]);
});

test("while the file cannot be written, its desk sees every count, one warning is logged, and nothing is lost", async () => {
  const { app: desk, visitor } = await startSignedIn();
  const blocker = new Database(join(desk.dataDir, ACTIVITY_NAME));
  onCleanup(() => blocker.close());
  blocker.run("BEGIN IMMEDIATE");
  const warnings = () => desk.log.filter(({ msg }) => msg.includes("is not written"));
  let stored = 0;
  const post = async () => {
    expect((await desk.post(signal)).status).toBe(201);
    stored += 1;
  };
  while (warnings().length === 0) {
    await post();
    await Bun.sleep(50);
  }
  for (let index = 0; index < 60; index++) {
    await post();
    await Bun.sleep(50);
  }
  expect((await desk.post({ ...signal, side: "up" })).status).toBe(422);
  const text = await lookUntil(visitor, (html) => totals(html).join() === `${stored},0,1`);
  expect(reasonsIn(text)).toHaveLength(1);
  expect(warnings()).toHaveLength(1);
  blocker.run("COMMIT");
  const days = { deskId: deskIdOf(desk), keyIds: null, width: "day", from: 0 } as const;
  const counted = async () => (await readActivity(desk).buckets(days))[0]?.stored ?? 0;
  while ((await counted()) < stored) await Bun.sleep(50);
  expect(await counted()).toBe(stored);
});

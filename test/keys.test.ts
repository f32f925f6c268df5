import { createHash } from "node:crypto";
import { describe, expect, test } from "bun:test";
import { callUrl, query, signal, startTestApp, type TestApp } from "./_setup.ts";

const MINUTE_MS = 60_000;
const DAY_MS = 86_400_000;

async function postWith(app: TestApp, key: string, body: object = signal): Promise<number> {
  const { status } = await callUrl(app.url, "/v1/signals", {
    method: "POST",
    headers: { Authorization: `Bearer ${key}`, "Content-Type": "application/json" },
    body: JSON.stringify(body),
  });
  return status;
}

/** A clock that stands still until it is set. */
async function startWithClock() {
  const time = { at: Date.UTC(2026, 0, 1) };
  const app = await startTestApp({ now: () => time.at });
  const lastUsed = (keyId: string) =>
    query<{ last_used_at: number | null }>(
      app.dataDir,
      "SELECT last_used_at FROM api_keys WHERE id = ?",
      keyId,
    )[0]?.last_used_at;
  return { time, app, lastUsed };
}

describe("revoking", () => {
  test("takes effect on the very next request, and leaves the signals and the other keys", async () => {
    const app = await startTestApp();
    const { registry, post, key, keyId } = app;
    const other = registry.mintKey({ desk: "alpha", label: null, expiresInMs: null });
    for (let round = 0; round < 20; round++) expect((await post(signal)).status).toBe(201);
    registry.revokeKey(keyId);
    expect(await postWith(app, key)).toBe(401);
    expect(await postWith(app, other.key)).toBe(201);
    expect(query(app.dataDir, "SELECT key_id FROM signals WHERE key_id = ?", keyId)).toHaveLength(
      20,
    );
  });

  test("does not spare a repeat of a signal that is stored", async () => {
    const app = await startTestApp();
    const repeated = { ...signal, client_signal_id: "once" };
    expect((await app.post(repeated)).status).toBe(201);
    app.registry.revokeKey(app.keyId);
    expect((await app.post(repeated)).status).toBe(401);
  });

  test("a second time keeps the time of the first", async () => {
    const { app, time } = await startWithClock();
    const { record } = app.registry.revokeKey(app.keyId);
    time.at += DAY_MS;
    expect(app.registry.revokeKey(app.keyId)).toEqual({ record, changed: false });
  });
});

describe("expiry", () => {
  test("a key works until its time and not at it", async () => {
    const { app, time } = await startWithClock();
    const { key } = app.registry.mintKey({ desk: "alpha", label: null, expiresInMs: DAY_MS });
    expect(await postWith(app, key)).toBe(201);
    time.at += DAY_MS - 1;
    expect(await postWith(app, key)).toBe(201);
    time.at += 1;
    expect(await postWith(app, key)).toBe(401);
    expect(await postWith(app, app.key)).toBe(201);
  });

  test("an expired key's answer is that of an unknown one", async () => {
    const { app, time } = await startWithClock();
    const { key } = app.registry.mintKey({ desk: "alpha", label: null, expiresInMs: 1 });
    time.at += 1;
    const [expired, unknown] = await Promise.all(
      [key, `sbk_${"0".repeat(64)}`].map((presented) =>
        app.post(signal, { Authorization: `Bearer ${presented}` }),
      ),
    );
    expect(expired?.status).toBe(401);
    expect(expired?.text).toBe(unknown?.text ?? "");
  });
});

test("a key that stopped working is refused before its body is looked at", async () => {
  const { app, time } = await startWithClock();
  const expiring = app.registry.mintKey({ desk: "alpha", label: null, expiresInMs: 1 });
  const invalid = { ...signal, side: "up" };
  expect(await postWith(app, app.key, invalid)).toBe(422);
  expect(await postWith(app, expiring.key, invalid)).toBe(422);
  app.registry.revokeKey(app.keyId);
  time.at += 1;
  expect(await postWith(app, app.key, invalid)).toBe(401);
  expect(await postWith(app, expiring.key, invalid)).toBe(401);
});

test("rotation: both keys work during the overlap, and the new one alone after it", async () => {
  const { app, time } = await startWithClock();
  const { minted } = app.registry.rotateKey(app.keyId, { overlapMs: DAY_MS, expiresInMs: null });
  const both = async () => [await postWith(app, app.key), await postWith(app, minted.key)];
  expect(await both()).toEqual([201, 201]);
  time.at += DAY_MS - 1;
  expect(await both()).toEqual([201, 201]);
  time.at += 1;
  expect(await both()).toEqual([401, 201]);
  const desks = query(app.dataDir, "SELECT DISTINCT desk_id FROM signals");
  expect(desks).toHaveLength(1);
});

describe("last_used_at", () => {
  test("is the time of the first use, and then written at most once a minute", async () => {
    const { app, time, lastUsed } = await startWithClock();
    const start = time.at;
    expect(lastUsed(app.keyId)).toBeNull();
    const uses: [afterMs: number, written: number][] = [
      [0, 0],
      [1, 0],
      [MINUTE_MS - 1, 0],
      [MINUTE_MS, MINUTE_MS],
      [MINUTE_MS * 2 - 1, MINUTE_MS],
      [MINUTE_MS * 10, MINUTE_MS * 10],
    ];
    for (const [afterMs, written] of uses) {
      time.at = start + afterMs;
      expect((await app.post(signal)).status).toBe(201);
      expect([afterMs, lastUsed(app.keyId)]).toEqual([afterMs, start + written]);
    }
  });

  test("is written for each key by itself, and for a repeat too", async () => {
    const { app, time, lastUsed } = await startWithClock();
    const other = app.registry.mintKey({ desk: "alpha", label: null, expiresInMs: null });
    const repeated = { ...signal, client_signal_id: "once" };
    await app.post(repeated);
    time.at += 5;
    expect(await postWith(app, other.key, repeated)).toBe(200);
    expect(lastUsed(app.keyId)).toBe(time.at - 5);
    expect(lastUsed(other.record.id)).toBe(time.at);
  });

  test("costs no write of its own: a request that stores nothing leaves it", async () => {
    const { app, lastUsed } = await startWithClock();
    expect((await app.post({ ...signal, side: "up" })).status).toBe(422);
    expect((await app.post("{")).status).toBe(400);
    expect(lastUsed(app.keyId)).toBeNull();
  });

  test("goes on being written when the clock has stepped back", async () => {
    const { app, time, lastUsed } = await startWithClock();
    await app.post(signal);
    time.at -= 60 * MINUTE_MS;
    await app.post(signal);
    expect(lastUsed(app.keyId)).toBe(time.at);
  });
});

test("what is stored of a key is the SHA-256 of all of it, and its last four characters", async () => {
  const { dataDir, key, keyId } = await startTestApp();
  const [row] = query<{ hash: string; last4: string }>(
    dataDir,
    "SELECT lower(hex(key_hash)) AS hash, last4 FROM api_keys WHERE id = ?",
    keyId,
  );
  expect(row).toEqual({
    hash: createHash("sha256").update(key).digest("hex"),
    last4: key.slice(-4),
  });
});

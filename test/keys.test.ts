/** Keys on the request path: revoked, expired, rotated, and when they were last used. */
import { createHash } from "node:crypto";
import { expect, test } from "bun:test";
import { DAY_MS } from "../src/domain/time.ts";
import { query, signal, startTestApp } from "./_setup.ts";

/** A server whose clock stands still until it is set. */
async function start() {
  const time = { at: Date.UTC(2026, 0, 1) };
  const app = await startTestApp({ now: () => time.at });
  const { dataDir, registry } = app;
  const row = (keyId: string) =>
    query<{ hash: string; last4: string; last_used_at: number | null }>(
      dataDir,
      "SELECT lower(hex(key_hash)) AS hash, last4, last_used_at FROM api_keys WHERE id = ?",
      keyId,
    )[0];
  return {
    ...app,
    time,
    row,
    mint: (expiresInMs: number | null) =>
      registry.mintKey({ scope: "send", desk: "alpha", label: null, expiresInMs }),
    postWith: async (key: string, body: object = signal) =>
      (await app.post(body, { Authorization: `Bearer ${key}` })).status,
  };
}

test("a revoked key gets 401 on the next request, a repeat included; its signals stay", async () => {
  const { registry, mint, postWith, key, keyId, dataDir } = await start();
  const other = mint(null);
  const repeated = { ...signal, client_signal_id: "once" };
  expect(await postWith(key, repeated)).toBe(201);
  registry.revokeKey(keyId);
  expect(await postWith(key)).toBe(401);
  expect(await postWith(key, repeated)).toBe(401);
  expect(await postWith(key, { ...signal, side: "up" })).toBe(401);
  expect(await postWith(other.key)).toBe(201);
  expect(query(dataDir, "SELECT key_id FROM signals WHERE key_id = ?", keyId)).toHaveLength(1);
});

test("a key works until the moment it expires, and is then answered like an unknown one", async () => {
  const { mint, post, postWith, time } = await start();
  const { key } = mint(DAY_MS);
  expect(await postWith(key)).toBe(201);
  time.at += DAY_MS - 1;
  expect(await postWith(key)).toBe(201);
  time.at += 1;
  const answer = async (presented: string) => {
    const { status, text } = await post(signal, { Authorization: `Bearer ${presented}` });
    return { status, text };
  };
  const unknown = await answer(`sbk_${"0".repeat(64)}`);
  expect(unknown.status).toBe(401);
  expect(await answer(key)).toEqual(unknown);
});

test("only the SHA-256 of a key and its last four characters are stored", async () => {
  const { row, key, keyId } = await start();
  const hash = createHash("sha256").update(key).digest("hex");
  expect(row(keyId)).toEqual({ hash, last4: key.slice(-4), last_used_at: null });
});

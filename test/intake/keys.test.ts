/** Keys on the request path. `test/storage/keys-at-work.ts` has what the storage promises of them. */
import { createHash } from "node:crypto";
import { expect, test } from "bun:test";
import { mintKey, query, signal, startTestApp } from "../kit/setup.ts";

test("a revoked key gets 401 on the next request, a repeat included; its signals stay", async () => {
  const { post, registry, keyId, dataDir } = await startTestApp();
  const other = await mintKey(registry, "alpha");
  const repeated = { ...signal, client_signal_id: "once" };
  expect((await post(repeated)).status).toBe(201);
  await registry.revokeKey(keyId);
  for (const body of [signal, repeated, { ...signal, side: "up" }]) {
    expect((await post(body)).status).toBe(401);
  }
  expect((await post(signal, { Authorization: `Bearer ${other.key}` })).status).toBe(201);
  expect(query(dataDir, "SELECT key_id FROM signals WHERE key_id = ?", keyId)).toHaveLength(1);
});

test("only the SHA-256 of a key and its last four characters are stored", async () => {
  const { dataDir, key } = await startTestApp();
  const hash = createHash("sha256").update(key).digest("hex");
  const sql = "SELECT lower(hex(key_hash)) AS hash, last4 FROM api_keys";
  expect(query(dataDir, sql)).toEqual([{ hash, last4: key.slice(-4) }]);
});

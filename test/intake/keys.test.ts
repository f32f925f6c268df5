/** Keys on the request path. `test/storage/keys-at-work.ts` has what the storage promises of them. */
import { createHash } from "node:crypto";
import { describe, expect, test } from "bun:test";
import {
  callUrl,
  mintKey,
  posting,
  query,
  sharedByFile,
  signal,
  startTestApp,
} from "../kit/setup.ts";

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

/** A server that trusts a proxy, which names the client, and a key that is limited to networks. */
async function startBehind(trustedProxy: string, host = "127.0.0.1") {
  const listen = { host, port: 0 };
  const app = await startTestApp({ config: { listen, trustedProxies: [trustedProxy] } });
  const networks = ["203.0.113.0/24", "2001:db8::/32"];
  const limited = await mintKey(app.registry, "alpha", { limits: { networks } });
  const url = app.url.replace("[::]", "127.0.0.1");
  const from = (forwarded: string | null, key = limited.key, more: object = {}) => {
    const named = forwarded === null ? {} : { "X-Forwarded-For": forwarded };
    const headers = { "X-Forwarded-Proto": "https", ...named, ...more };
    return callUrl(url, "/v1/signals", posting(key, signal, { headers }));
  };
  return { ...app, ...limited, from };
}

const behindProxy = sharedByFile(() => startBehind("127.0.0.1"));

describe("a key that is limited to networks", () => {
  test("works from them, and elsewhere is answered like an unknown key, which the log tells apart", async () => {
    const { from, log, key, keyId, dataDir } = await startBehind("127.0.0.1");
    expect((await from("203.0.113.9")).status).toBe(201);
    const unknown = await from("203.0.113.9", `sbk_${"0".repeat(64)}`);
    const foreign = await from("198.51.100.7");
    expect([foreign.status, foreign.body]).toEqual([401, unknown.body]);
    const [ofForeign, ofUnknown] = [foreign, unknown].map(({ headers }) => [...headers.keys()]);
    expect(ofForeign).toEqual(ofUnknown ?? []);
    // Before the rate and the body.
    const early = await from("198.51.100.7", key, { "Content-Type": "text/plain" });
    expect(early.status).toBe(401);
    expect(log.filter(({ status }) => status === 401)).toMatchObject([
      { error: "unauthorized" },
      { error: "foreign_network", key_id: keyId, client: "198.51.100.7" },
      { error: "foreign_network", key_id: keyId, client: "198.51.100.7" },
    ]);
    expect(query(dataDir, "SELECT count(*) AS n FROM signals")).toEqual([{ n: 1 }]);
  });

  test.each([
    ["203.0.113.255", 201],
    ["203.0.114.0", 401],
    ["2001:db8::5", 201],
    ["[2001:db8::5]:443", 201],
    ["2001:db9::5", 401],
    ["203.0.113.9:4711", 201],
    ["::ffff:203.0.113.9", 201],
    ["::ffff:cb00:7109", 201],
    ["198.51.100.7, 203.0.113.9", 201],
    ["203.0.113.9, 198.51.100.7", 401],
    ["203.0.113.9, 198.51.100.7, 127.0.0.1", 401],
    ["203.0.113.9%eth0", 401],
    ["203.0.113.9/24", 401],
    ["unknown", 401],
    ["", 401],
    [",".repeat(5_000), 401],
    [null, 401],
  ])("behind a trusted proxy, X-Forwarded-For: %j gets %i", async (forwarded, status) => {
    const { from } = behindProxy();
    expect((await from(forwarded)).status).toBe(status);
  });

  test("cannot be used by naming an address to a server that trusts another proxy", async () => {
    const { from } = await startBehind("10.0.0.1");
    expect((await from("203.0.113.9")).status).toBe(401);
  });

  test("works over IPv6 sockets, where an IPv4 address is written as an IPv6 one", async () => {
    const { from, registry } = await startBehind("10.0.0.1", "::");
    const own = await mintKey(registry, "alpha", { limits: { networks: ["127.0.0.0/8"] } });
    expect((await from(null, own.key)).status).toBe(201);
    const other = await mintKey(registry, "alpha", { limits: { networks: ["127.0.0.2"] } });
    expect((await from(null, other.key)).status).toBe(401);
  });

  test("counts as ended once it is revoked, from wherever it is used", async () => {
    const { from, registry, keyId, log } = await startBehind("127.0.0.1");
    await registry.revokeKey(keyId);
    expect((await from("198.51.100.7")).status).toBe(401);
    expect(log.findLast(({ status }) => status === 401)).toMatchObject({ error: "unauthorized" });
  });
});

test("a key that is limited to sources and types gets 422 for others, and stores nothing", async () => {
  const { post, registry, dataDir } = await startTestApp();
  const limits = { sources: ["venue_1", "venue_3"], types: ["stock"] };
  const { key } = await mintKey(registry, "alpha", { limits });
  const send = (fields: object) =>
    post(
      { ...signal, source: "venue_3", type: "stock", ...fields },
      { Authorization: `Bearer ${key}` },
    );
  const source = "must be one of: venue_1, venue_3; the key is limited to these";
  const type = "must be one of: stock; the key is limited to these";
  const reasonsOf = async (fields: object) => {
    const { status, body } = await send(fields);
    return [status, body["fields"]];
  };
  expect(await reasonsOf({ source: "venue_2" })).toEqual([422, { source }]);
  expect(await reasonsOf({ source: "venue_2", type: "crypto", side: "up" })).toEqual([
    422,
    { source, type, side: "must be one of: open, close" },
  ]);
  for (const value of ["venue_4", ["venue_1"], null, { toString: "venue_1" }]) {
    const reason = "must be one of: venue_1, venue_2, venue_3";
    expect(await reasonsOf({ source: value })).toEqual([422, { source: reason }]);
  }
  expect(await reasonsOf({ type: undefined })).toEqual([422, { type: "required" }]);
  // Validated before a duplicate is looked for, also if another key sent the original.
  const once = { client_signal_id: "once" };
  expect((await send({ ...once, source: "venue_2" })).status).toBe(422);
  const original = await post({ ...signal, ...once });
  expect(original.status).toBe(201);
  expect((await send({ ...once, source: "venue_2" })).status).toBe(422);
  const repeat = await send(once);
  expect([repeat.status, repeat.body["id"]]).toEqual([200, original.body["id"]]);
  expect((await send({ source: "venue_1" })).status).toBe(201);
  expect(query(dataDir, "SELECT count(*) AS n FROM signals")).toEqual([{ n: 2 }]);
});

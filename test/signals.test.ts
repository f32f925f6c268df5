import { expect, test } from "bun:test";
import { decodeTime } from "ulid";
import { errorCatalogue } from "../src/domain/errors.ts";
import {
  type Answer,
  mintKey,
  openForDamage,
  query,
  signal,
  startTestApp,
  type TestApp,
  type TestAppOptions,
} from "./_setup.ts";

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;
const ULID = /^[0-7][0-9A-HJKMNP-TV-Z]{25}$/;

const wholeSignal = {
  ...signal,
  direction: "short",
  price: 64_250.5,
  quantity: 0.25,
  signal_time: 1_790_000_000_000,
  client_signal_id: "a-1",
  metadata: { take_profit: 66_000, stop_loss: 63_000 },
} as const;

test("a signal is stored, attributed and answered with 201", async () => {
  const receivedAt = 1_790_000_000_123;
  const { post, dataDir, keyId } = await startTestApp({ now: () => receivedAt });
  const { status, body } = await post(wholeSignal);
  expect(status).toBe(201);
  expect(body).toEqual({
    id: expect.stringMatching(ULID),
    received_at: receivedAt,
    deduped: false,
  });
  expect(decodeTime(body["id"] as string)).toBe(receivedAt);
  expect(query(dataDir, "SELECT * FROM signals")).toEqual([
    {
      ...wholeSignal,
      seq: 1,
      id: body["id"],
      desk_id: 1,
      key_id: keyId,
      received_at: receivedAt,
      metadata: '{"take_profit":66000,"stop_loss":63000}',
    },
  ]);
});

test("absent optional fields are stored as NULL", async () => {
  const { post, dataDir } = await startTestApp();
  expect((await post(signal)).status).toBe(201);
  const columns = "direction, price, quantity, signal_time, client_signal_id, metadata";
  expect(query(dataDir, `SELECT ${columns} FROM signals`)).toEqual([
    {
      direction: null,
      price: null,
      quantity: null,
      signal_time: null,
      client_signal_id: null,
      metadata: null,
    },
  ]);
});

test("a repeat is answered with 200, the original's id and no received_at", async () => {
  const { post, dataDir } = await startTestApp();
  const first = await post(wholeSignal);
  const second = await post(wholeSignal);
  expect(second.status).toBe(200);
  expect(second.body).toEqual({ id: first.body["id"], deduped: true });
  expect(second.headers.has("X-Duplicate-Differs")).toBe(false);
  expect(query(dataDir, "SELECT count(*) AS n FROM signals")).toEqual([{ n: 1 }]);
});

test("each signal belongs to the desk that owns the key, whichever of its keys was used", async () => {
  const { call, dataDir, registry, key, keyId } = await startTestApp();
  const other = mintKey(registry, "alpha");
  const beta = mintKey(registry, "beta");
  for (const presented of [beta.key, key, other.key]) {
    const { status } = await call("/v1/signals", jsonRequest({ "X-API-Key": presented }, signal));
    expect(status).toBe(201);
  }
  const rows = query(
    dataDir,
    "SELECT desks.name AS desk, key_id FROM signals JOIN desks ON desks.id = desk_id ORDER BY seq",
  );
  expect(rows).toEqual([
    { desk: "beta", key_id: beta.keyId },
    { desk: "alpha", key_id: keyId },
    { desk: "alpha", key_id: other.keyId },
  ]);
});

interface Refusal {
  readonly name: string;
  readonly options?: TestAppOptions;
  readonly send: (app: TestApp) => Promise<Answer>;
  readonly status: number;
  readonly body: Record<string, unknown>;
  readonly headers?: Record<string, string>;
}

const behindProxy: TestAppOptions = { config: { trustedProxies: ["127.0.0.1"] } };

const refusals: Refusal[] = [
  {
    name: "400 where the body is not JSON",
    send: ({ post }) => post("{"),
    status: 400,
    body: {
      error: "bad_request",
      message: expect.stringMatching(/^The body is not valid JSON: .+\.$/),
    },
  },
  {
    name: "401 where there is no key",
    send: ({ call }) => call("/v1/signals", jsonRequest({}, signal)),
    status: 401,
    body: {
      error: "unauthorized",
      message: "The request has no API key; send the header Authorization: Bearer <API_KEY>.",
    },
    headers: { "www-authenticate": "Bearer" },
  },
  {
    name: "403 where a trusted proxy received it over plain HTTP, without a redirect",
    options: behindProxy,
    send: ({ post }) => post(signal, { "X-Forwarded-Proto": "http" }),
    status: 403,
    body: { error: "https_required", message: errorCatalogue.https_required.message },
  },
  {
    name: "403 where one hop of the proxies was plain HTTP",
    options: behindProxy,
    send: ({ post }) => post(signal, { "X-Forwarded-Proto": "https, http" }),
    status: 403,
    body: { error: "https_required", message: errorCatalogue.https_required.message },
  },
  {
    name: "404 for a path that there is not",
    send: ({ call, key }) => call("/v1/signal", jsonRequest({ "X-API-Key": key }, signal)),
    status: 404,
    body: { error: "not_found", message: errorCatalogue.not_found.message },
  },
  {
    name: "404 for the path with a slash after it",
    send: ({ call, key }) => call("/v1/signals/", jsonRequest({ "X-API-Key": key }, signal)),
    status: 404,
    body: { error: "not_found", message: errorCatalogue.not_found.message },
  },
  {
    name: "404 for another version",
    send: ({ call, key }) => call("/v2/signals", jsonRequest({ "X-API-Key": key }, signal)),
    status: 404,
    body: { error: "not_found", message: errorCatalogue.not_found.message },
  },
  ...["GET", "PUT", "PATCH", "DELETE", "OPTIONS"].map((method) => ({
    name: `405 for ${method} on the signals' path`,
    send: ({ call, key }: TestApp) =>
      call("/v1/signals", { method, headers: { "X-API-Key": key } }),
    status: 405,
    body: { error: "method_not_allowed", message: errorCatalogue.method_not_allowed.message },
    headers: { allow: "POST" },
  })),
  {
    name: "405 for a POST of the description",
    send: ({ call, key }) => call("/openapi.yaml", jsonRequest({ "X-API-Key": key }, signal)),
    status: 405,
    body: { error: "method_not_allowed", message: errorCatalogue.method_not_allowed.message },
    headers: { allow: "GET, HEAD" },
  },
  {
    name: "413 for a body over 64 KiB",
    send: ({ post }) => post(`${JSON.stringify(signal)}${" ".repeat(65_536)}`),
    status: 413,
    body: { error: "payload_too_large", message: "The body is larger than 65536 bytes." },
    headers: { connection: "close" },
  },
  {
    name: "415 for another media type",
    send: ({ post }) => post(signal, { "Content-Type": "text/plain" }),
    status: 415,
    body: {
      error: "unsupported_media_type",
      message: errorCatalogue.unsupported_media_type.message,
    },
  },
  {
    name: "422 for invalid fields, all of them at once and nothing else",
    send: ({ post }) => post({ source: "venue_2", type: "bond", side: 1, price: "1" }),
    status: 422,
    body: {
      error: "validation_failed",
      fields: {
        type: "must be one of: prediction_market, crypto, stock",
        side: "must be one of: open, close",
        symbol: "required",
        price: "must be a number",
      },
    },
  },
  {
    name: "429 beyond the rate",
    options: { config: { rateLimit: 1 } },
    send: ({ post }) => until(429, () => post(signal)),
    status: 429,
    body: { error: "rate_limited", message: errorCatalogue.rate_limited.message },
    headers: { "retry-after": "1" },
  },
  {
    name: "500 with the code alone, whatever broke",
    send: ({ dataDir, post }) => {
      openForDamage(dataDir).run(
        "CREATE TRIGGER boom BEFORE INSERT ON signals BEGIN SELECT RAISE(ABORT, 'an inner detail'); END",
      );
      return post(signal);
    },
    status: 500,
    body: { error: "internal_error" },
  },
  {
    name: "503 where the storage fails",
    send: ({ dataDir, post }) => {
      openForDamage(dataDir).run("ALTER TABLE signals RENAME TO gone");
      return post(signal);
    },
    status: 503,
    body: { error: "unavailable", message: errorCatalogue.unavailable.message },
    headers: { "retry-after": "1" },
  },
];

/** Of all the answers' headers, those that only some of them have. */
const specialHeaders = ["www-authenticate", "allow", "retry-after", "x-duplicate-differs"];

test.each(refusals)("refused: $name", async ({ options, send, status, body, headers = {} }) => {
  const app = await startTestApp(options);
  const answer = await send(app);
  expect(answer.status).toBe(status);
  expect(answer.body).toEqual(body);
  expect(answer.headers.get("Content-Type")).toBe("application/json");
  expect(answer.headers.has("Location")).toBe(false);
  for (const [name, value] of Object.entries(headers)) {
    // Bun's fetch keeps `Connection` to itself; raw.test.ts sees it.
    if (name !== "connection") expect(answer.headers.get(name)).toBe(value);
  }
  const present = specialHeaders.filter((name) => answer.headers.has(name));
  expect(present).toEqual(specialHeaders.filter((name) => name in headers));
  const requestId = answer.headers.get("X-Request-Id");
  expect(requestId).toMatch(UUID);
  const lines = app.log.filter((line) => line["request_id"] === requestId);
  // A failure of our own is an error, with what broke: the client is told nothing of it.
  const want =
    status === 500
      ? { level: "error", msg: "internal error", status, err: { message: expect.any(String) } }
      : { level: "info", msg: "rejected", status, error: body["error"] };
  expect(lines).toMatchObject([want]);
});

test("HEAD of the signals' path is refused like GET, without a body", async () => {
  const { call } = await startTestApp();
  const { status, text, headers } = await call("/v1/signals", { method: "HEAD" });
  expect({ status, text, allow: headers.get("Allow") }).toEqual({
    status: 405,
    text: "",
    allow: "POST",
  });
});

test("a proxy that says https is believed", async () => {
  const { post } = await startTestApp(behindProxy);
  expect((await post(signal, { "X-Forwarded-Proto": "https" })).status).toBe(201);
  expect((await post(signal, { "X-Forwarded-Proto": "HTTPS, https" })).status).toBe(201);
});

test("a query behind the path changes nothing", async () => {
  const { call, key } = await startTestApp();
  const answer = await call("/v1/signals?a=b", jsonRequest({ "X-API-Key": key }, signal));
  expect(answer.status).toBe(201);
});

test("every answer has a request id of its own, which is in its log line with its status", async () => {
  const { post, log } = await startTestApp();
  const answers = [
    await post({ ...signal, client_signal_id: "a" }),
    await post({ ...signal, client_signal_id: "a" }),
    await post({}),
    await post("{"),
  ];
  const ids = answers.map(({ headers }) => headers.get("X-Request-Id"));
  expect(new Set(ids).size).toBe(answers.length);
  const logged = ids.map((id) => log.filter((line) => line["request_id"] === id));
  expect(logged.map((lines) => lines.map((line) => line["status"]))).toEqual([
    [201],
    [200],
    [422],
    [400],
  ]);
});

test("a request id that the client sends is not taken over", async () => {
  const { post } = await startTestApp();
  const { headers } = await post(signal, { "X-Request-Id": "mine" });
  expect(headers.get("X-Request-Id")).toMatch(UUID);
});

const HEX = "0123456789abcdef".repeat(4);

const how = "send the header Authorization: Bearer <API_KEY>.";
/** What the message of a 401 says. */
const unauthorized = {
  invalid: "The API key is not valid: it is unknown, revoked or expired.",
  missing: `The request has no API key; ${how}`,
  "no Bearer": `The word Bearer is missing before the API key; ${how}`,
  "another scheme": `The Authorization header is not of the form Bearer <API_KEY>; ${how}`,
  "Bearer alone": `There is no API key after the word Bearer; ${how}`,
  different: "Authorization and X-API-Key carry different keys; send only one of the two.",
} as const;

/** `own` is a valid key of the desk, `other` another valid one of the same desk. */
const keyHeaders: {
  name: string;
  headers: (own: string, other: string) => Record<string, string>;
  want: 201 | keyof typeof unauthorized;
}[] = [
  { name: "Bearer", headers: (own) => ({ Authorization: `Bearer ${own}` }), want: 201 },
  { name: "bearer, lower", headers: (own) => ({ Authorization: `bearer ${own}` }), want: 201 },
  { name: "BEARER, upper", headers: (own) => ({ Authorization: `BEARER ${own}` }), want: 201 },
  { name: "X-API-Key", headers: (own) => ({ "X-API-Key": own }), want: 201 },
  {
    name: "both, the same",
    headers: (own) => ({ Authorization: `Bearer ${own}`, "X-API-Key": own }),
    want: 201,
  },
  {
    name: "both valid, and different",
    headers: (own, other) => ({ Authorization: `Bearer ${own}`, "X-API-Key": other }),
    want: "different",
  },
  {
    name: "both, the second unknown",
    headers: (own) => ({ Authorization: `Bearer ${own}`, "X-API-Key": `sbk_${HEX}` }),
    want: "different",
  },
  {
    name: "both, the first unknown",
    headers: (own) => ({ Authorization: `Bearer sbk_${HEX}`, "X-API-Key": own }),
    want: "different",
  },
  {
    name: "another scheme beside a valid X-API-Key",
    headers: (own) => ({ Authorization: `Basic ${btoa(`u:${own}`)}`, "X-API-Key": own }),
    want: "another scheme",
  },
  { name: "no header", headers: () => ({}), want: "missing" },
  {
    name: "the key without a scheme",
    headers: (own) => ({ Authorization: own }),
    want: "no Bearer",
  },
  {
    name: "Bearer in X-API-Key",
    headers: (own) => ({ "X-API-Key": `Bearer ${own}` }),
    want: "invalid",
  },
  {
    name: "a scheme without a key",
    headers: () => ({ Authorization: "Bearer" }),
    want: "Bearer alone",
  },
  { name: "Basic", headers: (own) => ({ Authorization: `Basic ${own}` }), want: "another scheme" },
  {
    name: "no space",
    headers: (own) => ({ Authorization: `Bearer${own}` }),
    want: "another scheme",
  },
  {
    name: "a comma",
    headers: (own) => ({ Authorization: `Bearer ${own}, x` }),
    want: "invalid",
  },
  {
    name: "two keys",
    headers: (own, other) => ({ "X-API-Key": `${own}, ${other}` }),
    want: "invalid",
  },
  { name: "an unknown key", headers: () => ({ "X-API-Key": `sbk_${HEX}` }), want: "invalid" },
  { name: "no prefix", headers: (own) => ({ "X-API-Key": own.slice(4) }), want: "invalid" },
  {
    name: "another prefix",
    headers: (own) => ({ "X-API-Key": own.replace("sbk_", "sbx_") }),
    want: "invalid",
  },
  {
    name: "one digit less",
    headers: (own) => ({ "X-API-Key": own.slice(0, -1) }),
    want: "invalid",
  },
  { name: "one digit more", headers: (own) => ({ "X-API-Key": `${own}0` }), want: "invalid" },
  { name: "upper case", headers: (own) => ({ "X-API-Key": own.toUpperCase() }), want: "invalid" },
  { name: "empty", headers: () => ({ "X-API-Key": "" }), want: "invalid" },
];

function refusal(want: keyof typeof unauthorized): [number, string] {
  return [401, JSON.stringify({ error: "unauthorized", message: unauthorized[want] })];
}

test("a key is taken from either header; any other way gets a 401 that says what to send", async () => {
  const { call, registry, key } = await startTestApp();
  const other = mintKey(registry, "alpha").key;
  const got: Record<string, unknown> = {};
  for (const { name, headers } of keyHeaders) {
    const answer = await call("/v1/signals", jsonRequest(headers(key, other), signal));
    got[name] = answer.status === 201 ? 201 : [answer.status, answer.text];
  }
  expect(got).toEqual(
    Object.fromEntries(
      keyHeaders.map(({ name, want }) => [name, want === 201 ? 201 : refusal(want)]),
    ),
  );
});

test("unknown, malformed, revoked and expired keys get the same answer", async () => {
  let now = Date.now();
  const { call, registry } = await startTestApp({ now: () => now });
  const expired = registry.mintKey({ desk: "alpha", label: null, expiresInMs: 1_000 });
  const revoked = mintKey(registry, "alpha");
  registry.revokeKey(revoked.keyId);
  now += 2_000;
  for (const key of [`sbk_${HEX}`, "nonsense", revoked.key, expired.key]) {
    const { status, text, headers } = await call(
      "/v1/signals",
      jsonRequest({ "X-API-Key": key }, signal),
    );
    expect([status, text]).toEqual(refusal("invalid"));
    expect(headers.get("WWW-Authenticate")).toBe("Bearer");
  }
});

test("a key in the query does not authenticate", async () => {
  const { call, key } = await startTestApp();
  const answer = await call(`/v1/signals?api_key=${key}&X-API-Key=${key}`, jsonRequest({}, signal));
  expect(answer.status).toBe(401);
});

test("a revoked key stops at once, its signals stay, and the desk's other keys go on", async () => {
  const { call, post, dataDir, registry, keyId } = await startTestApp();
  const other = mintKey(registry, "alpha");
  expect((await post(signal)).status).toBe(201);
  registry.revokeKey(keyId);
  const refused = await post(signal);
  expect([refused.status, refused.body]).toEqual([
    401,
    { error: "unauthorized", message: errorCatalogue.unauthorized.message },
  ]);
  const answer = await call("/v1/signals", jsonRequest({ "X-API-Key": other.key }, signal));
  expect(answer.status).toBe(201);
  expect(query(dataDir, "SELECT key_id FROM signals ORDER BY seq")).toEqual([
    { key_id: keyId },
    { key_id: other.keyId },
  ]);
});

test("a key does not authenticate from the millisecond on in which it expires", async () => {
  let now = 1_790_000_000_000;
  const { call, registry } = await startTestApp({ now: () => now });
  const { key } = registry.mintKey({ desk: "alpha", label: null, expiresInMs: 1_000 });
  const got: number[] = [];
  for (const time of [now, now + 999, now + 1_000, now + 1_001]) {
    now = time;
    got.push((await call("/v1/signals", jsonRequest({ "X-API-Key": key }, signal))).status);
  }
  expect(got).toEqual([201, 201, 401, 401]);
});

function jsonRequest(headers: Record<string, string>, body: unknown): RequestInit {
  return {
    method: "POST",
    headers: { "Content-Type": "application/json", ...headers },
    body: JSON.stringify(body),
  };
}

/** Sends until an answer has the status; a bucket that refills while we send needs a few more. */
async function until(status: number, send: () => Promise<Answer>): Promise<Answer> {
  for (let tries = 0; tries < 100; tries += 1) {
    const answer = await send();
    if (answer.status === status) return answer;
  }
  throw new Error(`no answer had the status ${status}`);
}

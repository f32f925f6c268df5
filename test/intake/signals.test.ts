/** `POST /v1/signals` (SPEC.md 4.1, 5, 7): every answer, with its body and headers. */
import { expect, test } from "bun:test";
import { decodeTime } from "ulid";
import { errorCatalogue } from "../../src/domain/errors.ts";
import {
  type Answer,
  mintKey,
  openForDamage,
  query,
  signal,
  startTestApp,
  type TestApp,
  type TestAppOptions,
} from "../kit/setup.ts";

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

const optional = {
  direction: "short",
  price: 64_250.5,
  quantity: 0.25,
  signal_time: 1_790_000_000_000,
  client_signal_id: "a-1",
  metadata: { take_profit: 66_000, stop_loss: 63_000 },
} as const;
const wholeSignal = { ...signal, ...optional };

test("a signal is stored, attributed and answered with 201", async () => {
  const receivedAt = 1_790_000_000_123;
  const { post, dataDir, keyId } = await startTestApp({ now: () => receivedAt });
  const { status, body } = await post(wholeSignal);
  expect(status).toBe(201);
  expect(body).toEqual({ id: expect.any(String), received_at: receivedAt, deduped: false });
  expect(decodeTime(String(body["id"]))).toBe(receivedAt);
  expect(query(dataDir, "SELECT * FROM signals")).toMatchObject([
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

test("a signal belongs to the desk that owns the key, whichever of its keys was used", async () => {
  const { call, dataDir, registry, key, keyId } = await startTestApp();
  const other = await mintKey(registry, "alpha");
  const beta = await mintKey(registry, "beta");
  for (const presented of [beta.key, key, other.key]) {
    expect((await call("/v1/signals", request({ "X-API-Key": presented }))).status).toBe(201);
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
  /** The answer's `error`, with the catalogue's message unless `body` has more. */
  readonly error: keyof typeof errorCatalogue;
  readonly body?: Record<string, unknown>;
  readonly headers?: Record<string, string>;
}

const withKey = ({ key }: TestApp) => request({ "X-API-Key": key });

const refusals: Refusal[] = [
  {
    name: "400 for a body that is not JSON",
    send: ({ post }) => post("{"),
    status: 400,
    error: "bad_request",
    body: { message: expect.stringMatching(/^The body is not valid JSON: .+\.$/) },
  },
  {
    name: "401 without a key",
    send: ({ call }) => call("/v1/signals", request({})),
    status: 401,
    error: "unauthorized",
    body: {
      message: "The request has no API key; send the header Authorization: Bearer <API_KEY>.",
    },
    headers: { "www-authenticate": "Bearer" },
  },
  {
    name: "403 for plain HTTP to a trusted proxy, without a redirect",
    options: { config: { trustedProxies: ["127.0.0.1"] } },
    send: ({ post }) => post(signal, { "X-Forwarded-Proto": "http" }),
    status: 403,
    error: "https_required",
  },
  ...["/v1/signal", "/v1/signals/", "/v2/signals"].map((path) => ({
    name: `404 for ${path}`,
    send: (app: TestApp) => app.call(path, withKey(app)),
    status: 404,
    error: "not_found" as const,
  })),
  ...["GET", "PUT", "PATCH", "DELETE", "OPTIONS"].map((method) => ({
    name: `405 for ${method} /v1/signals`,
    send: ({ call }: TestApp) => call("/v1/signals", { method }),
    status: 405,
    error: "method_not_allowed" as const,
    body: { message: "This path does not take this method: use POST." },
    headers: { allow: "POST" },
  })),
  {
    name: "405 for POST /openapi.yaml",
    send: (app) => app.call("/openapi.yaml", withKey(app)),
    status: 405,
    error: "method_not_allowed",
    body: { message: "This path does not take this method: use GET or HEAD." },
    headers: { allow: "GET, HEAD" },
  },
  {
    name: "413 for a body over 64 KiB",
    send: ({ post }) => post(`${JSON.stringify(signal)}${" ".repeat(65_536)}`),
    status: 413,
    error: "payload_too_large",
  },
  {
    name: "415 for another media type",
    send: ({ post }) => post(signal, { "Content-Type": "text/plain" }),
    status: 415,
    error: "unsupported_media_type",
  },
  {
    name: "422 for invalid fields, with all of them",
    send: ({ post }) => post({ source: "venue_2", type: "bond", side: 1, price: "1" }),
    status: 422,
    error: "validation_failed",
    body: {
      fields: {
        type: "must be one of: prediction_market, crypto, stock",
        side: "must be one of: open, close",
        symbol: "required",
        price: "must be a number",
      },
    },
  },
  {
    name: "429 over the rate",
    // A burst of less than one request: the next one has to wait 8 s.
    options: { config: { rateLimitPerS: 0.1 } },
    send: ({ post }) => post(signal),
    status: 429,
    error: "rate_limited",
    headers: { "retry-after": "8" },
  },
  {
    name: "503 when the storage fails",
    send: ({ dataDir, post }) => {
      openForDamage(dataDir).run("ALTER TABLE signals RENAME TO gone");
      return post(signal);
    },
    status: 503,
    error: "unavailable",
    headers: { "retry-after": "1" },
  },
];

/** Headers that only some answers have. */
const specialHeaders = ["www-authenticate", "allow", "retry-after", "x-duplicate-differs"];

test.each(refusals)("refused: $name", async ({ options, send, status, error, body, headers }) => {
  const answer = await send(await startTestApp(options));
  const { message } = errorCatalogue[error];
  expect(answer.status).toBe(status);
  expect(answer.body).toEqual({ error, ...(message === null ? {} : { message }), ...body });
  expect(answer.headers.get("Content-Type")).toBe("application/json");
  expect(answer.headers.get("X-Request-Id")).toMatch(UUID);
  expect(answer.headers.has("Location")).toBe(false);
  const present = specialHeaders.flatMap((name) => {
    const value = answer.headers.get(name);
    return value === null ? [] : [[name, value]];
  });
  expect(Object.fromEntries(present)).toEqual(headers ?? {});
});

test("HEAD /v1/signals is refused like GET, without a body", async () => {
  const { call } = await startTestApp();
  const { status, text, headers } = await call("/v1/signals", { method: "HEAD" });
  expect([status, text, headers.get("Allow")]).toEqual([405, "", "POST"]);
});

test("every answer has its own request id, which its log line repeats", async () => {
  const { post, log } = await startTestApp();
  const repeated = { ...signal, client_signal_id: "a" };
  const seen: unknown[] = [];
  for (const body of [repeated, repeated, {}, "{"]) {
    // A client's own id is not taken over.
    const { status, headers } = await post(body, { "X-Request-Id": "mine" });
    const id = headers.get("X-Request-Id");
    const lines = log.filter((line) => line["request_id"] === id && "status" in line);
    expect(lines.map((line) => line["status"])).toEqual([status]);
    seen.push(id);
  }
  expect(new Set(seen).size).toBe(4);
});

const HEX = "0123456789abcdef".repeat(4);
const how = "send the header Authorization: Bearer <API_KEY>.";
const messages = {
  invalid:
    "The API key is not valid here: it is unknown, revoked, expired, or limited to other networks.",
  missing: `The request has no API key; ${how}`,
  "no Bearer": `The word Bearer is missing before the API key; ${how}`,
  "another scheme": `The Authorization header is not of the form Bearer <API_KEY>; ${how}`,
  "Bearer alone": `There is no API key after the word Bearer; ${how}`,
  "two keys": "Authorization and X-API-Key carry different keys; send only one of the two.",
} as const;

type Headers = Record<string, string>;

/** `own` and `other` are valid keys of the same desk. */
const keyHeaders: [
  name: string,
  headers: (own: string, other: string) => Headers,
  want: 201 | keyof typeof messages,
][] = [
  ["Bearer", (own) => ({ Authorization: `Bearer ${own}` }), 201],
  ["bearer in lower case", (own) => ({ Authorization: `bearer ${own}` }), 201],
  ["X-API-Key", (own) => ({ "X-API-Key": own }), 201],
  ["both headers", (own) => ({ Authorization: `Bearer ${own}`, "X-API-Key": own }), 201],
  [
    "two valid keys",
    (own, other) => ({ Authorization: `Bearer ${own}`, "X-API-Key": other }),
    "two keys",
  ],
  [
    "an unknown key beside a valid one",
    (own) => ({ Authorization: `Bearer sbk_${HEX}`, "X-API-Key": own }),
    "two keys",
  ],
  [
    "Basic beside a valid X-API-Key",
    (own) => ({ Authorization: `Basic ${btoa(`u:${own}`)}`, "X-API-Key": own }),
    "another scheme",
  ],
  ["no header", () => ({}), "missing"],
  ["a key without a scheme", (own) => ({ Authorization: own }), "no Bearer"],
  ["a scheme without a key", () => ({ Authorization: "Bearer" }), "Bearer alone"],
  ["Basic", (own) => ({ Authorization: `Basic ${own}` }), "another scheme"],
  ["no space", (own) => ({ Authorization: `Bearer${own}` }), "another scheme"],
  ["text after the key", (own) => ({ Authorization: `Bearer ${own}, x` }), "invalid"],
  ["Bearer in X-API-Key", (own) => ({ "X-API-Key": `Bearer ${own}` }), "invalid"],
  ["two keys in one header", (own, other) => ({ "X-API-Key": `${own}, ${other}` }), "invalid"],
  ["an unknown key", () => ({ "X-API-Key": `sbk_${HEX}` }), "invalid"],
  ["no prefix", (own) => ({ "X-API-Key": own.slice(4) }), "invalid"],
  ["one digit less", (own) => ({ "X-API-Key": own.slice(0, -1) }), "invalid"],
  ["upper case", (own) => ({ "X-API-Key": own.toUpperCase() }), "invalid"],
  ["an empty header", () => ({ "X-API-Key": "" }), "invalid"],
];

test("a key is taken from either header; anything else gets a 401 that says what to send", async () => {
  const { call, registry, key } = await startTestApp();
  const other = (await mintKey(registry, "alpha")).key;
  for (const [name, headers, want] of keyHeaders) {
    const { status, body } = await call("/v1/signals", request(headers(key, other)));
    const message = want === 201 ? undefined : messages[want];
    expect([name, status, body["message"]]).toEqual([name, want === 201 ? 201 : 401, message]);
  }
  const inQuery = await call(`/v1/signals?api_key=${key}&X-API-Key=${key}`, request({}));
  expect([inQuery.status, inQuery.body["message"]]).toEqual([401, messages.missing]);
});

test("unknown, malformed, revoked and expired keys get the same answer", async () => {
  let now = Date.now();
  const { call, registry } = await startTestApp({ now: () => now });
  const expired = await registry.mintKey({
    scope: "send",
    desk: "alpha",
    label: null,
    expiresInMs: 1_000,
  });
  const revoked = await mintKey(registry, "alpha");
  await registry.revokeKey(revoked.keyId);
  now += 2_000;
  for (const key of [`sbk_${HEX}`, "nonsense", revoked.key, expired.key]) {
    const { status, body, headers } = await call("/v1/signals", request({ "X-API-Key": key }));
    expect([status, body]).toEqual([401, { error: "unauthorized", message: messages.invalid }]);
    expect(headers.get("WWW-Authenticate")).toBe("Bearer");
  }
});

function request(headers: Headers): RequestInit {
  return {
    method: "POST",
    headers: { "Content-Type": "application/json", ...headers },
    body: JSON.stringify(signal),
  };
}

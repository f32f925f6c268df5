/**
 * Bytes that no HTTP client sends. Bun answers most malformed framing by itself, with a status and
 * nothing else, and closes; what it lets through is ours to answer.
 */
import { expect, test } from "bun:test";
import { type Exchange, send } from "./_raw.ts";
import { query, signal, startTestApp, type TestApp } from "./_setup.ts";

const body = JSON.stringify(signal);
const line = "POST /v1/signals HTTP/1.1\r\n";
const host = "Host: signals.example\r\n";
const length = `Content-Length: ${body.length}\r\n`;
const chunked = "Transfer-Encoding: chunked\r\n";
const chunk = `${body.length.toString(16)}\r\n${body}\r\n`;

type Piece = string | Uint8Array | ((text: string) => boolean);

interface Case {
  readonly name: string;
  /** `auth` are the header lines of a valid key and media type. */
  readonly pieces: (auth: string) => Piece[];
}

/** `HTTP` line and headers as given, then the signal. */
const whole = (name: string, head: (auth: string) => string, text = body): Case => ({
  name,
  pieces: (auth) => [`${head(auth)}\r\n${text}`],
});
const header = (name: string, lines: string): Case =>
  whole(name, (auth) => `${line}${host}${auth}${lines}${length}`);
const framing = (name: string, lines: string, text = body): Case =>
  whole(name, (auth) => `${line}${host}${auth}${lines}`, text);

/** Requests whose end nobody can be sure of, or that are no HTTP/1.1 at all: RFC 9112 has them refused. */
const malformed: Case[] = [
  { name: "garbage", pieces: () => ["\0\u0001\u0002garbage\r\n\r\n"] },
  { name: "HTTP/2", pieces: () => ["PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"] },
  whole("no Host", (auth) => `${line}${auth}${length}`),
  framing("two lengths, the second shorter", `${length}Content-Length: 3\r\n`),
  framing("two lengths, the first shorter", `Content-Length: 3\r\n${length}`),
  framing("a list of lengths", `Content-Length: ${body.length}, 3\r\n`),
  framing("a negative length", "Content-Length: -1\r\n"),
  framing("a space before the colon", `Content-Length : ${body.length}\r\n`),
  framing("length and chunks", `${length}${chunked}`, `${chunk}0\r\n\r\n`),
  framing("chunks and length", `${chunked}${length}`, `${chunk}0\r\n\r\n`),
  framing("gzip and chunks", "Transfer-Encoding: gzip, chunked\r\n", `${chunk}0\r\n\r\n`),
  framing("a chunk's size that is no number", chunked, `zz\r\n${body}\r\n0\r\n\r\n`),
  framing("a chunk that is longer than said", chunked, `5\r\n${body}\r\n0\r\n\r\n`),
  {
    name: "bare line feeds",
    pieces: (auth) => [`${line}${host}${auth}${length}\r\n${body}`.replaceAll("\r\n", "\n")],
  },
  header("a folded header", "X-A: 1\r\n 2\r\n"),
  header("a NUL in a header", "X-A: a\0b\r\n"),
  header("a header without a colon", "garbage\r\n"),
  header("300 headers", Array.from({ length: 300 }, (_, index) => `X-${index}: 1\r\n`).join("")),
  header("a header of 100 KB", `X-A: ${"a".repeat(100_000)}\r\n`),
  header("a line end in a key", "X-API-Key: sbk_\r\n\r\n"),
];

test.each(malformed)("malformed, and stored by nobody: $name", async ({ pieces }) => {
  const app = await startTestApp();
  const exchange = await exchangeWith(app, pieces);
  for (const { status, headers, body: text } of exchange.responses) {
    if (headers["x-request-id"] === undefined) {
      // Bun's own: a status and nothing else, and the connection is over.
      expect([400, 431, 505]).toContain(status);
      expect([headers, text, exchange.end]).toEqual([{ connection: "close" }, "", "closed"]);
    } else expect(status).toBeGreaterThanOrEqual(400);
  }
  expect(query(app.dataDir, "SELECT count(*) AS n FROM signals")).toEqual([{ n: 0 }]);
  await expectHealthy(app, exchange);
});

/** Unusual, and legal or harmless: `want` are the statuses that may come back, in order. */
const unusual: (Case & { readonly want: number[]; readonly stored: number })[] = [
  { ...framing("the same length twice", `${length}${length}`), want: [201], stored: 1 },
  { ...framing("chunks", chunked, `${chunk}0\r\n\r\n`), want: [201], stored: 1 },
  {
    ...framing(
      "a chunk with an extension",
      chunked,
      `${chunk.replace("\r\n", ";a=b\r\n")}0\r\n\r\n`,
    ),
    want: [201],
    stored: 1,
  },
  {
    ...framing("CHUNKED", "Transfer-Encoding: CHUNKED\r\n", `${chunk}0\r\n\r\n`),
    want: [201],
    stored: 1,
  },
  { ...header("an empty header", "X-A:\r\n"), want: [201], stored: 1 },
  { ...header("Latin-1 in a header", "X-A: \u00e9\r\n"), want: [201], stored: 1 },
  {
    ...whole("HTTP/1.0 without a Host", (auth) => `POST /v1/signals HTTP/1.0\r\n${auth}${length}`),
    want: [201],
    stored: 1,
  },
  {
    ...whole("a short Host", (auth) => `${line}Host: a\r\n${auth}${length}`),
    want: [201],
    stored: 1,
  },
  {
    ...whole("an empty Host", (auth) => `${line}Host:\r\n${auth}${length}`),
    want: [201],
    stored: 1,
  },
  {
    ...whole(
      "the absolute form",
      (auth) => `POST http://signals.example/v1/signals HTTP/1.1\r\n${host}${auth}${length}`,
    ),
    want: [201],
    stored: 1,
  },
  {
    name: "byte after byte",
    pieces: (auth) =>
      [...Buffer.from(`${line}${host}${auth}${length}\r\n${body}`)].map(
        (byte) => new Uint8Array([byte]),
      ),
    want: [201],
    stored: 1,
  },
  {
    name: "Expect: 100-continue",
    pieces: (auth) => [
      `${line}${host}${auth}${length}Expect: 100-continue\r\n\r\n`,
      (text) => text.includes("100 Continue"),
      body,
    ],
    want: [100, 201],
    stored: 1,
  },
  {
    name: "Expect: 100-Continue, which Bun does not know, when its body comes",
    pieces: (auth) => [`${line}${host}${auth}${length}Expect: 100-Continue\r\n\r\n`, body],
    want: [201],
    stored: 1,
  },
  {
    name: "Expect: 100-Continue without a key",
    pieces: () => [`${line}${host}${length}Expect: 100-Continue\r\n\r\n`],
    want: [401],
    stored: 0,
  },
  {
    name: "Expect: 100-continue for a body that is too large",
    pieces: (auth) => [
      `${line}${host}${auth}Content-Length: 70000\r\nExpect: 100-continue\r\n\r\n`,
    ],
    want: [100, 413],
    stored: 0,
  },
  {
    name: "no body and no length",
    pieces: (auth) => [`${line}${host}${auth}\r\n`],
    want: [400],
    stored: 0,
  },
  {
    ...whole(
      "another path",
      (auth) => `POST /v1/signals/../signal HTTP/1.1\r\n${host}${auth}${length}`,
    ),
    want: [404],
    stored: 0,
  },
  {
    ...whole("two slashes", (auth) => `POST //v1/signals HTTP/1.1\r\n${host}${auth}${length}`),
    want: [404],
    stored: 0,
  },
  {
    ...whole("an escaped path", (auth) => `POST /v1/%73ignals HTTP/1.1\r\n${host}${auth}${length}`),
    want: [404],
    stored: 0,
  },
  {
    ...whole("a bad escape", (auth) => `POST /v1/%zz HTTP/1.1\r\n${host}${auth}${length}`),
    want: [404],
    stored: 0,
  },
  {
    ...whole(
      "Latin-1 in the path",
      (auth) => `POST /v1/\u00ff HTTP/1.1\r\n${host}${auth}${length}`,
    ),
    want: [404],
    stored: 0,
  },
  {
    name: "CONNECT",
    pieces: () => [`CONNECT signals.example:443 HTTP/1.1\r\n${host}\r\n`],
    want: [404],
    stored: 0,
  },
  {
    name: "TRACE",
    pieces: () => [`TRACE /v1/signals HTTP/1.1\r\n${host}\r\n`],
    want: [405],
    stored: 0,
  },
  {
    name: "an upgrade to WebSocket",
    pieces: () => [
      `GET /v1/signals HTTP/1.1\r\n${host}Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n`,
    ],
    want: [405],
    stored: 0,
  },
  {
    name: "a Host that is no host, on a path that there is not",
    pieces: () => ["GET /nowhere HTTP/1.1\r\nHost: [\r\n\r\n"],
    want: [404],
    stored: 0,
  },
  {
    name: "a Host that is no host, with another method",
    pieces: () => ["GET /v1/signals HTTP/1.1\r\nHost: a:b:c\r\n\r\n"],
    want: [405],
    stored: 0,
  },
];

test.each(unusual)("unusual, and answered: $name", async ({ pieces, want, stored }) => {
  const app = await startTestApp();
  const exchange = await exchangeWith(app, pieces);
  expect(exchange.responses.map(({ status }) => status)).toEqual(want);
  expect(query(app.dataDir, "SELECT count(*) AS n FROM signals")).toEqual([{ n: stored }]);
  await expectHealthy(app, exchange);
});

/** What the client sent ends before its request does: there is nobody to answer. */
const cut: Case[] = [
  { name: "in the request line", pieces: () => ["POST /v1/si"] },
  { name: "in a header", pieces: () => [`${line}${host}Authorizat`] },
  { name: "before the body", pieces: (auth) => [`${line}${host}${auth}${length}\r\n`] },
  {
    name: "in the body",
    pieces: (auth) => [`${line}${host}${auth}${length}\r\n${body.slice(0, 9)}`],
  },
  {
    name: "one byte before the end",
    pieces: (auth) => [`${line}${host}${auth}${length}\r\n${body.slice(0, -1)}`],
  },
  {
    name: "in a chunk",
    pieces: (auth) => [`${line}${host}${auth}${chunked}\r\n${chunk.slice(0, 9)}`],
  },
  {
    name: "before the last chunk",
    pieces: (auth) => [`${line}${host}${auth}${chunked}\r\n${chunk}`],
  },
];

test.each(cut)("cut off, and not stored: $name", async ({ pieces }) => {
  const app = await startTestApp();
  const exchange = await exchangeWith(app, pieces, true);
  expect(exchange.responses.filter(({ status }) => status < 400)).toEqual([]);
  expect(query(app.dataDir, "SELECT count(*) AS n FROM signals")).toEqual([{ n: 0 }]);
  await expectHealthy(app, exchange);
});

/** Bun may take the end of our side for the end of the connection: then the outcome is unknown to us. */
test("behind a request whose sender has ended its side, a retry settles the outcome", async () => {
  const app = await startTestApp();
  const text = JSON.stringify({ ...signal, client_signal_id: "a" });
  const request = `${line}${host}${authOf(app)}Content-Length: ${text.length}\r\n\r\n${text}`;
  const { responses } = await send(app.app.address.port, [request], { halfClose: true });
  const retry = await app.post(text);
  const rows = query<{ id: string }>(app.dataDir, "SELECT id FROM signals");
  expect(rows).toEqual([{ id: retry.body["id"] as string }]);
  for (const { status, body: answer } of responses) {
    expect([status, JSON.parse(answer)]).toMatchObject([201, { id: rows[0]?.id }]);
    expect(retry.status).toBe(200);
  }
});

/** RFC 9112, 3.2 would have them refused; Bun does not tell us of them, and nothing is made of a Host. */
test.each(["Host: a\r\nHost: b\r\n", "Host: a/b\r\n", "Host: a b\r\n", "Host: [\r\n"])(
  "a wrong Host changes nothing of what is stored and answered: %j",
  async (hosts) => {
    const app = await startTestApp();
    const exchange = await exchangeWith(app, (auth) => [
      `${line}${hosts}${auth}${length}\r\n${body}`,
    ]);
    const statuses = exchange.responses.map(({ status }) => status);
    expect(["201", "400"]).toContain(statuses.join());
    const stored = statuses[0] === 201 ? 1 : 0;
    expect(query(app.dataDir, "SELECT count(*) AS n FROM signals")).toEqual([{ n: stored }]);
    expect(exchange.text).not.toContain("Location");
    await expectHealthy(app, exchange);
  },
);

test("a key is refused before the body is there", async () => {
  const { app, post } = await startTestApp();
  const { responses } = await send(app.address.port, [
    `${line}${host}Authorization: Bearer no\r\nContent-Length: 60000\r\n\r\n{`,
  ]);
  expect(responses.map(({ status }) => status)).toEqual([401]);
  expect((await post(signal)).status).toBe(201);
});

test("the body of a refused request is not taken for the next request", async () => {
  const app = await startTestApp();
  const smuggled = `${line}${host}${authOf(app)}${length}\r\n${body}`;
  const text = `${line}${host}Content-Length: ${smuggled.length}\r\n\r\n${smuggled}`;
  const { responses } = await send(app.app.address.port, [text]);
  expect(responses.map(({ status }) => status)).toEqual([401]);
  expect(query(app.dataDir, "SELECT count(*) AS n FROM signals")).toEqual([{ n: 0 }]);
});

/** Bun does not take a request before it has answered the one before it: it closes the connection. */
test("pipelined signals are answered in order or not at all, and never twice", async () => {
  const app = await startTestApp();
  const signals = ["a", "b"].map((id) => JSON.stringify({ ...signal, client_signal_id: id }));
  const requests = signals.map(
    (text) => `${line}${host}${authOf(app)}Content-Length: ${text.length}\r\n\r\n${text}`,
  );
  const exchange = await send(app.app.address.port, [requests.join("")], { responses: 2 });
  const rows = () =>
    query<{ id: string; client_signal_id: string }>(
      app.dataDir,
      "SELECT id, client_signal_id FROM signals ORDER BY seq",
    );
  for (const [index, { status, body: text }] of exchange.responses.entries()) {
    expect(status).toBe(201);
    const { id } = JSON.parse(text) as { id: string };
    expect(rows()[index]).toEqual({ id, client_signal_id: ["a", "b"][index] ?? "" });
  }
  // Whatever became of them: a retry settles it.
  for (const text of signals) expect([200, 201]).toContain((await app.post(text)).status);
  const stored = rows().map((row) => row.client_signal_id);
  expect(stored.toSorted()).toEqual(["a", "b"]);
});

test("one after the other, many signals go through one connection", async () => {
  const app = await startTestApp();
  const request = `${line}${host}${authOf(app)}${length}\r\n${body}`;
  const pieces: Piece[] = [];
  for (let count = 1; count <= 20; count += 1) {
    pieces.push(request, (text) => text.split('"deduped":false}').length > count);
  }
  const { responses } = await send(app.app.address.port, pieces, { responses: 20 });
  expect(responses.map(({ status }) => status)).toEqual(Array.from({ length: 20 }, () => 201));
});

test("a hundred connections that never finish a request do not stop the others", async () => {
  const app = await startTestApp({ config: { stopTimeoutMs: 50 } });
  const { port } = app.app.address;
  const unfinished = `${line}${host}${authOf(app)}${length}\r\n{`;
  const sockets = await Promise.all(
    Array.from({ length: 100 }, () =>
      Bun.connect({ hostname: "127.0.0.1", port, socket: { data() {} } }),
    ),
  );
  for (const socket of sockets) socket.write(unfinished);
  expect((await app.post(signal)).status).toBe(201);
  for (const socket of sockets) socket.end();
  expect((await app.post(signal)).status).toBe(201);
  expect(query(app.dataDir, "SELECT count(*) AS n FROM signals")).toEqual([{ n: 2 }]);
});

function authOf({ key }: TestApp): string {
  return `Authorization: Bearer ${key}\r\nContent-Type: application/json\r\n`;
}

function exchangeWith(app: TestApp, pieces: Case["pieces"], halfClose = false): Promise<Exchange> {
  return send(app.app.address.port, pieces(authOf(app)), { halfClose });
}

/** Nothing of ours leaked, nothing broke, and the next request is served. */
async function expectHealthy(app: TestApp, { text }: Exchange): Promise<void> {
  expect(text).not.toMatch(/\.ts\b|\bat \w+ \(|node_modules|Error:|elysia|bun/i);
  expect(app.log.filter(({ level }) => level === "error")).toEqual([]);
  expect(app.fatal).toEqual([]);
  expect((await app.post(signal)).status).toBe(201);
}

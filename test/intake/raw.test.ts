/**
 * Bytes that no HTTP client sends. Bun answers most malformed framing by itself, with a status and
 * nothing else, and closes; what it lets through is ours to answer.
 */
import { expect, test } from "bun:test";
import { type Exchange, send } from "../kit/raw.ts";
import { appSharedByFile, query, signal, type TestApp } from "../kit/setup.ts";

const emptyApp = appSharedByFile();

const body = JSON.stringify(signal);
const path = "/v1/signals";
const line = `POST ${path} HTTP/1.1\r\n`;
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

/** The request line and headers as given, then the signal. */
const whole = (name: string, head: (auth: string) => string, text = body): Case => ({
  name,
  pieces: (auth) => [`${head(auth)}\r\n${text}`],
});
const header = (name: string, lines: string): Case =>
  whole(name, (auth) => `${line}${host}${auth}${lines}${length}`);
const framing = (name: string, lines: string, text = body): Case =>
  whole(name, (auth) => `${line}${host}${auth}${lines}`, text);
const to = (name: string, target: string): Case =>
  whole(name, (auth) => `POST ${target} HTTP/1.1\r\n${host}${auth}${length}`);
const bare = (name: string, head: string): Case => ({ name, pieces: () => [`${head}\r\n`] });

/** Requests of ambiguous length, or not HTTP/1.1: RFC 9112 requires that they are refused. */
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

test.each(malformed)("malformed, and not stored: $name", async ({ pieces }) => {
  const app = emptyApp();
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

/** Legal or harmless, with the statuses of the answers. A 201 stores the signal. */
const unusual: [statuses: number[], Case][] = [
  [[201], framing("the same length twice", `${length}${length}`)],
  [[201], framing("chunks", "Transfer-Encoding: CHUNKED\r\n", `${chunk}0\r\n\r\n`)],
  [[201], framing("a chunk extension", chunked, `${chunk.replace("\r\n", ";a=b\r\n")}0\r\n\r\n`)],
  [[201], header("Latin-1 in a header, and an empty one", "X-A: \u00e9\r\nX-B:\r\n")],
  [[201], whole("HTTP/1.0 without a Host", (auth) => `POST ${path} HTTP/1.0\r\n${auth}${length}`)],
  [[201], whole("a short Host", (auth) => `${line}Host: a\r\n${auth}${length}`)],
  [[201], whole("an empty Host", (auth) => `${line}Host:\r\n${auth}${length}`)],
  [[201], to("the absolute form", `http://signals.example${path}`)],
  [
    [201],
    {
      name: "byte after byte",
      pieces: (auth) =>
        Array.from(Buffer.from(`${line}${host}${auth}${length}\r\n${body}`), (byte) =>
          Uint8Array.of(byte),
        ),
    },
  ],
  [
    [100, 201],
    {
      name: "Expect: 100-continue",
      pieces: (auth) => [
        `${line}${host}${auth}${length}Expect: 100-continue\r\n\r\n`,
        (text) => text.includes("100 Continue"),
        body,
      ],
    },
  ],
  [[201], header("Expect: 100-Continue, which Bun ignores", "Expect: 100-Continue\r\n")],
  [[401], bare("Expect without a key", `${line}${host}${length}Expect: 100-Continue\r\n`)],
  [
    [100, 413],
    {
      name: "Expect for a body that is too large",
      pieces: (auth) => [
        `${line}${host}${auth}Content-Length: 70000\r\nExpect: 100-continue\r\n\r\n`,
      ],
    },
  ],
  [[400], { name: "no body and no length", pieces: (auth) => [`${line}${host}${auth}\r\n`] }],
  [[404], to("another path", `${path}/../signal`)],
  [[404], to("two slashes", `/${path}`)],
  [[404], to("an escaped path", "/v1/%73ignals")],
  [[404], to("a bad escape", "/v1/%zz")],
  [[404], to("Latin-1 in the path", "/v1/\u00ff")],
  [[404], bare("CONNECT", `CONNECT signals.example:443 HTTP/1.1\r\n${host}`)],
  [[405], bare("TRACE", `TRACE ${path} HTTP/1.1\r\n${host}`)],
  [
    [405],
    bare(
      "an upgrade to WebSocket",
      `GET ${path} HTTP/1.1\r\n${host}Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n`,
    ),
  ],
  [[404], bare("an invalid Host on an unknown path", "GET /nowhere HTTP/1.1\r\nHost: [\r\n")],
  [[405], bare("an invalid Host with another method", `GET ${path} HTTP/1.1\r\nHost: a:b:c\r\n`)],
];

test.each(unusual.map(([statuses, { name, pieces }]) => [name, statuses, pieces] as const))(
  "unusual: %s is answered with %j",
  async (_, statuses, pieces) => {
    const app = emptyApp();
    const exchange = await exchangeWith(app, pieces);
    expect(exchange.responses.map(({ status }) => status)).toEqual(statuses);
    const n = statuses.includes(201) ? 1 : 0;
    expect(query(app.dataDir, "SELECT count(*) AS n FROM signals")).toEqual([{ n }]);
    await expectHealthy(app, exchange);
  },
);

/** The client closes before its request is complete. */
const cut: Case[] = [
  { name: "in the request line", pieces: () => ["POST /v1/si"] },
  { name: "before the body", pieces: (auth) => [`${line}${host}${auth}${length}\r\n`] },
  {
    name: "one byte before the end",
    pieces: (auth) => [`${line}${host}${auth}${length}\r\n${body.slice(0, -1)}`],
  },
  {
    name: "before the last chunk",
    pieces: (auth) => [`${line}${host}${auth}${chunked}\r\n${chunk}`],
  },
];

test.each(cut)("cut off, and not stored: $name", async ({ pieces }) => {
  const app = emptyApp();
  const exchange = await exchangeWith(app, pieces, true);
  expect(exchange.responses.filter(({ status }) => status < 400)).toEqual([]);
  expect(query(app.dataDir, "SELECT count(*) AS n FROM signals")).toEqual([{ n: 0 }]);
  await expectHealthy(app, exchange);
});

/** Bun may treat a half-closed connection as closed: the outcome is then unknown to the client. */
test("after a half-closed connection, a retry settles the outcome", async () => {
  const app = emptyApp();
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

test("a wrong key is refused before the body has arrived", async () => {
  const { app, post } = emptyApp();
  const { responses } = await send(app.address.port, [
    `${line}${host}Authorization: Bearer no\r\nContent-Length: 60000\r\n\r\n{`,
  ]);
  expect(responses.map(({ status }) => status)).toEqual([401]);
  expect((await post(signal)).status).toBe(201);
});

test("the body of a refused request is not taken for the next request", async () => {
  const app = emptyApp();
  const smuggled = `${line}${host}${authOf(app)}${length}\r\n${body}`;
  const text = `${line}${host}Content-Length: ${smuggled.length}\r\n\r\n${smuggled}`;
  const { responses } = await send(app.app.address.port, [text]);
  expect(responses.map(({ status }) => status)).toEqual([401]);
  expect(query(app.dataDir, "SELECT count(*) AS n FROM signals")).toEqual([{ n: 0 }]);
});

/** Bun closes the connection when a request arrives before the previous one is answered. */
test("pipelined signals are answered in order or not at all, and never twice", async () => {
  const app = emptyApp();
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
  // A retry settles the outcome.
  for (const text of signals) expect([200, 201]).toContain((await app.post(text)).status);
  const stored = rows().map((row) => row.client_signal_id);
  expect(stored.toSorted()).toEqual(["a", "b"]);
});

function authOf({ key }: TestApp): string {
  return `Authorization: Bearer ${key}\r\nContent-Type: application/json\r\n`;
}

function exchangeWith(app: TestApp, pieces: Case["pieces"], halfClose = false): Promise<Exchange> {
  return send(app.app.address.port, pieces(authOf(app)), { halfClose });
}

/** The answer leaks nothing internal, nothing failed, and the next request is served. */
async function expectHealthy(app: TestApp, { text }: Exchange): Promise<void> {
  expect(text).not.toMatch(/\.ts\b|\bat \w+ \(|node_modules|Error:|elysia|bun/i);
  expect(app.log.filter(({ level }) => level === "error")).toEqual([]);
  expect(app.fatal).toEqual([]);
  expect((await app.post(signal)).status).toBe(201);
}

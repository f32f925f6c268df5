/** Bytes that no HTTP client sends. `test/faults/network/hostile.test.ts` generates many more, with other framings. */
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
  /** Statuses of the answers. A 201 stores the signal. */
  readonly statuses: readonly number[];
  /** `auth` are the header lines of a valid key and media type. */
  readonly pieces: (auth: string) => Piece[];
}

/** The request line and headers as given, then the signal. */
const whole = (
  statuses: number[],
  name: string,
  head: (auth: string) => string,
  text = body,
): Case => ({ name, statuses, pieces: (auth) => [`${head(auth)}\r\n${text}`] });
const header = (statuses: number[], name: string, lines: string): Case =>
  whole(statuses, name, (auth) => `${line}${host}${auth}${lines}${length}`);
const bare = (statuses: number[], name: string, head: string): Case => ({
  name,
  statuses,
  pieces: () => [`${head}\r\n`],
});

/** As `openapi.yaml` says: a status and nothing else, and the connection is over. */
const ofTheParser: Case[] = [
  bare([505], "HTTP/2", `POST ${path} HTTP/2.0\r\n${host}`),
  whole([400], "no Host", (auth) => `${line}${auth}${length}`),
  header([400], "a list of lengths", "Content-Length: 3, 5\r\n"),
  header([400], "length and chunks", chunked),
  header([431], "300 headers", Array.from({ length: 300 }, (_, n) => `X-${n}: 1\r\n`).join("")),
  header([431], "a header of 17 KB", `X-A: ${"a".repeat(17_000)}\r\n`),
];

test.each(ofTheParser)("the parser answers, and nothing is stored: $name", async (row) => {
  const app = emptyApp();
  const exchange = await exchangeWith(app, row.pieces);
  const bareAnswer = { headers: { connection: "close" }, body: "" };
  expect(exchange.responses).toEqual(row.statuses.map((status) => ({ status, ...bareAnswer })));
  expect(exchange.end).toBe("closed");
  expect(query(app.dataDir, "SELECT count(*) AS n FROM signals")).toEqual([{ n: 0 }]);
  await expectHealthy(app, exchange);
});

const unusual: Case[] = [
  whole(
    [201],
    "chunks",
    (auth) => `${line}${host}${auth}Transfer-Encoding: CHUNKED\r\n`,
    `${chunk}0\r\n\r\n`,
  ),
  header([201], "Latin-1 in a header, and an empty one", "X-A: \u00e9\r\nX-B:\r\n"),
  whole([201], "HTTP/1.0 without a Host", (auth) => `POST ${path} HTTP/1.0\r\n${auth}${length}`),
  {
    name: "Expect: 100-continue",
    statuses: [100, 201],
    pieces: (auth) => [
      `${line}${host}${auth}${length}Expect: 100-continue\r\n\r\n`,
      (text) => text.includes("100 Continue"),
      body,
    ],
  },
  header([201], "Expect: 100-Continue, which Bun ignores", "Expect: 100-Continue\r\n"),
  bare([401], "Expect without a key", `${line}${host}${length}Expect: 100-Continue\r\n`),
  {
    name: "Expect for a body that is too large",
    statuses: [100, 413],
    pieces: (auth) => [
      `${line}${host}${auth}Content-Length: 70000\r\nExpect: 100-continue\r\n\r\n`,
    ],
  },
  bare([404], "a bad escape", `POST /v1/%zz HTTP/1.1\r\n${host}`),
  bare([404], "Latin-1 in the path", `POST /v1/\u00ff HTTP/1.1\r\n${host}`),
  bare([404], "CONNECT", `CONNECT signals.example:443 HTTP/1.1\r\n${host}`),
  bare([405], "TRACE", `TRACE ${path} HTTP/1.1\r\n${host}`),
  bare(
    [405],
    "an upgrade to WebSocket",
    `GET ${path} HTTP/1.1\r\n${host}Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n`,
  ),
];

test.each(unusual)("unusual: $name is answered with $statuses", async ({ statuses, pieces }) => {
  const app = emptyApp();
  const exchange = await exchangeWith(app, pieces);
  expect(exchange.responses.map(({ status }) => status)).toEqual([...statuses]);
  const n = statuses.includes(201) ? 1 : 0;
  expect(query(app.dataDir, "SELECT count(*) AS n FROM signals")).toEqual([{ n }]);
  await expectHealthy(app, exchange);
});

test.each(["before the last byte", "before the last chunk"])(
  "cut off %s, and not stored",
  async (where) => {
    const app = emptyApp();
    const exchange = await exchangeWith(
      app,
      (auth) => [
        where.endsWith("byte")
          ? `${line}${host}${auth}${length}\r\n${body.slice(0, -1)}`
          : `${line}${host}${auth}${chunked}\r\n${chunk}`,
      ],
      true,
    );
    expect(exchange.responses.filter(({ status }) => status < 400)).toEqual([]);
    expect(query(app.dataDir, "SELECT count(*) AS n FROM signals")).toEqual([{ n: 0 }]);
    await expectHealthy(app, exchange);
  },
);

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

/** A request is refused while its body is still on its way: the client must see the answer. */
import { expect, test } from "bun:test";
import { connect as connectTcp, type Socket } from "node:net";
import { connect as connectTls } from "node:tls";
import { makeCertificate, writeCertificate } from "../kit/certificates.ts";
import { send } from "../kit/raw.ts";
import { startTestApp, temporaryFolder, type TestApp } from "../kit/setup.ts";

const CHUNK_BYTES = 16_384;

/** The server as clients reach it. */
async function start(scheme: "http" | "https"): Promise<TestApp> {
  if (scheme === "http") return startTestApp();
  const tls = writeCertificate(temporaryFolder(), await makeCertificate("signalbox"));
  return startTestApp({ config: { tls } });
}

function connect({ app, url }: TestApp): Promise<Socket> {
  const { port } = app.address;
  const { promise, resolve, reject } = Promise.withResolvers<Socket>();
  const socket: Socket = url.startsWith("https:")
    ? connectTls({ host: "127.0.0.1", port, rejectUnauthorized: false }, () => resolve(socket))
    : connectTcp({ host: "127.0.0.1", port }, () => resolve(socket));
  socket.on("error", reject);
  return promise;
}

interface Upload {
  readonly bytes: number;
  readonly isChunked: boolean;
  readonly headers?: string;
}

/** Like a client that looks at no answer before it has sent everything. Null when it never sees one. */
async function upload(app: TestApp, { bytes, isChunked, headers }: Upload): Promise<string | null> {
  const socket = await connect(app);
  socket.pause();
  socket.on("error", () => {});
  const auth = headers ?? authOf(app);
  const framing = isChunked ? "Transfer-Encoding: chunked" : `Content-Length: ${bytes}`;
  socket.write(`POST /v1/signals HTTP/1.1\r\nHost: signals.example\r\n${auth}${framing}\r\n\r\n`);
  const chunk = "x".repeat(CHUNK_BYTES);
  const piece = isChunked ? `${CHUNK_BYTES.toString(16)}\r\n${chunk}\r\n` : chunk;
  for (let sent = 0; sent < bytes; sent += CHUNK_BYTES) {
    if (!(await hasSent(socket, piece))) return null;
  }
  if (isChunked) socket.write("0\r\n\r\n");
  const { promise, resolve } = Promise.withResolvers<string | null>();
  socket.on("data", (data: Buffer) => resolve(data.toString("latin1")));
  socket.on("close", () => resolve(null));
  socket.resume();
  const answer = await promise;
  socket.destroy();
  return answer;
}

/** False when the connection has broken. */
function hasSent(socket: Socket, piece: string): Promise<boolean> {
  return new Promise((resolve) => {
    const onClose = (): void => resolve(false);
    socket.once("close", onClose);
    socket.write(piece, (error) => {
      socket.off("close", onClose);
      resolve(error === null || error === undefined);
    });
  });
}

function authOf({ key }: TestApp): string {
  return `Authorization: Bearer ${key}\r\nContent-Type: application/json\r\n`;
}

const KIB = 1_024;
const sizes = [80 * KIB, 320 * KIB, 5_120 * KIB];

test.each(["http", "https"] as const)(
  "over %s, a client that is still sending a body that is too large sees the 413",
  async (scheme) => {
    const app = await start(scheme);
    for (const bytes of sizes) {
      for (const isChunked of [false, true]) {
        const answers = await Promise.all([1, 2, 3].map(() => upload(app, { bytes, isChunked })));
        const statuses = answers.map((answer) => answer?.split("\r\n", 1)[0]);
        expect({ bytes, isChunked, statuses }).toEqual({
          bytes,
          isChunked,
          statuses: Array(3).fill("HTTP/1.1 413 Payload Too Large"),
        });
        expect(answers[0]).toContain('{"error":"payload_too_large"');
      }
    }
  },
);

test("over https, a client that is still sending sees why its key or its media type was refused", async () => {
  const app = await start("https");
  const bytes = 1_024 * KIB;
  const wrongType = `Authorization: Bearer ${app.key}\r\nContent-Type: text/plain\r\n`;
  for (const isChunked of [false, true]) {
    expect(await upload(app, { bytes, isChunked, headers: "" })).toStartWith("HTTP/1.1 401 ");
    expect(await upload(app, { bytes, isChunked, headers: wrongType })).toStartWith(
      "HTTP/1.1 415 ",
    );
  }
});

test("over https, a client that asks for the end of the connection sees the answer, too", async () => {
  const app = await start("https");
  const close = "Connection: close\r\n";
  for (const [bytes, headers, status] of [
    [1_024 * KIB, `${close}${authOf(app)}`, 413],
    [1_024 * KIB, close, 401],
    [64 * KIB, close, 401],
  ] as const) {
    const answer = await upload(app, { bytes, isChunked: false, headers });
    expect(answer).toStartWith(`HTTP/1.1 ${status} `);
  }
});

test("a client that waits for its answer before it sends the body gets all of it at once", async () => {
  const app = await start("http");
  const startedAt = performance.now();
  const { responses } = await send(app.app.address.port, [
    `POST /v1/signals HTTP/1.1\r\nHost: signals.example\r\n${authOf(app)}Content-Length: 70000\r\n\r\n`,
  ]);
  expect(responses.map(({ status }) => status)).toEqual([413]);
  expect(performance.now() - startedAt).toBeLessThan(1_500);
});

test("a server that is stopping closes the connection after it has refused a body", async () => {
  const app = await start("http");
  const socket = await connect(app);
  let received = "";
  socket.on("data", (data: Buffer) => (received += data.toString("latin1")));
  const request = `POST /v1/signals HTTP/1.1\r\nHost: signals.example\r\nTransfer-Encoding: chunked\r\n\r\n`;
  socket.write(`${request}0\r\n\r\n`);
  while (!received.includes("unauthorized")) await Bun.sleep(5);
  expect(received).not.toMatch(/connection: close/i);
  received = "";
  const stopped = app.app.stop();
  socket.write(`${request}1\r\nx\r\n`);
  while (!received.includes("unauthorized")) await Bun.sleep(5);
  expect(received).toMatch(/connection: close/i);
  socket.end("0\r\n\r\n");
  await stopped;
});

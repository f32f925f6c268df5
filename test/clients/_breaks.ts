/** Ways in which a connection can break between a client and a server, most of them inside TLS. */
import { connect, createServer, type AddressInfo, type Socket } from "node:net";
import type { TestCertificate } from "../kit/certificates.ts";
import { onCleanup } from "../kit/setup.ts";

/** A connection through the box that breaks it. */
interface Wire {
  readonly client: Socket;
  readonly server: Socket;
}

type Act = (wire: Wire, bytes: Buffer) => void;

/** What happens to the first attempt. The server has stored the signal, except for a break in the handshake. */
interface Break {
  /** No later attempt succeeds: each gets plain text. */
  readonly isLasting?: true;
  /** In place of passing on the client's first bytes, the server's, or those of the server's answer. */
  readonly onHello?: Act;
  readonly onHandshake?: Act;
  readonly onAnswer?: Act;
  /** When the server has stored the signal, and has not answered. */
  readonly onStored?: (wire: Wire) => void;
  /** In place of the server's answer. */
  readonly answer?: () => Response;
}

const HANDSHAKE_FAILURE = 40;
const BAD_CERTIFICATE = 42;
const INTERNAL_ERROR = 80;

/** A fatal alert of the record layer, as a box can send it that does not know the keys. */
const alert = (reason: number) => Buffer.from([0x15, 3, 3, 0, 2, 2, reason]);
const applicationData = Buffer.concat([Buffer.from([0x17, 3, 3, 0, 32]), Buffer.alloc(32, 7)]);
const page = "<html>Sign in</html>";
const plainText = `HTTP/1.1 502 Bad Gateway\r\n\r\n${page}`;

/** Damages the first record, so that its MAC is wrong. */
function damaged(bytes: Buffer): Buffer {
  const last = Math.min(bytes.length, 5 + bytes.readUInt16BE(3)) - 1;
  bytes.writeUInt8(bytes.readUInt8(last) ^ 1, last);
  return bytes;
}

/** An HTTP answer that never ends. */
function half(): Response {
  const body = new ReadableStream({
    start: (controller) => controller.enqueue(Buffer.from('{"id":"01M0","deduped":')),
  });
  return new Response(body, { status: 201 });
}

const breaks = {
  "a record with a wrong MAC": {
    onAnswer: ({ client }, bytes) => void client.write(damaged(bytes)),
  },
  "plain text": {
    onAnswer: ({ client }) => void client.end(plainText),
  },
  "plain text for ever": { isLasting: true, onAnswer: ({ client }) => void client.end(plainText) },
  "random bytes": { onAnswer: ({ client }) => void client.end(Buffer.alloc(100, 7)) },
  "an alert": { onAnswer: ({ client }) => void client.end(alert(INTERNAL_ERROR)) },
  "an encrypted alert": { onStored: ({ server }) => void server.write(applicationData) },
  "an end without close_notify": { onAnswer: ({ client }) => void client.end() },
  "half an answer": {
    answer: half,
    onAnswer: ({ client }, bytes) => {
      client.write(bytes);
      setTimeout(() => client.end(), 100);
    },
  },
  "a reset": { onAnswer: ({ client }) => void client.resetAndDestroy() },
  "an alert in the handshake": {
    onHello: ({ client }) => void client.end(alert(HANDSHAKE_FAILURE)),
  },
  "an alert about certificates": {
    onHello: ({ client }) => void client.end(alert(BAD_CERTIFICATE)),
  },
  "a wrong MAC in the handshake": {
    onHandshake: ({ client }, bytes) => void client.end(damagedAtEnd(bytes)),
  },
  "an end in the handshake": { onHello: ({ client }) => void client.end() },
  "a reset in the handshake": { onHello: ({ client }) => void client.resetAndDestroy() },
  "a captive portal's page": { answer: () => new Response(page) },
  "another program's id": { answer: () => Response.json({ id: "1" }, { status: 201 }) },
  "an empty 204": { answer: () => new Response(null, { status: 204 }) },
  "a redirect": { answer: () => Response.redirect("https://127.0.0.1:1/", 307) },
  "a time-out of a middle box": { answer: () => new Response(page, { status: 408 }) },
  "a limit of a middle box": { answer: () => new Response(page, { status: 429 }) },
  "a middle box's error": { answer: () => new Response(page, { status: 502 }) },
  "a middle box's 404": { answer: () => new Response(page, { status: 404 }) },
  "an empty 503": { answer: () => new Response(null, { status: 503 }) },
} satisfies Record<string, Break>;

function damagedAtEnd(bytes: Buffer): Buffer {
  bytes.writeUInt8(bytes.readUInt8(bytes.length - 1) ^ 1, bytes.length - 1);
  return bytes;
}

export type BreakName = keyof typeof breaks;
export const lastingBreak = "plain text for ever" satisfies BreakName;
/** Those after which another attempt succeeds. */
export const breakNames = (Object.keys(breaks) as BreakName[]).filter(
  (name) => name !== lastingBreak,
);

/** In the handshake a client may look a second time what is wrong. */
const BROKEN_HANDSHAKES = 2;

/**
 * Starts an https server in front of an http one. Its first attempt breaks, and the others succeed. Returns
 * its URL.
 */
export function startBreaking(name: BreakName, target: string, tls: TestCertificate): string {
  const { isLasting, onHello, onHandshake, onStored, onAnswer, answer }: Break = breaks[name];
  const wires = new Map<number, Wire & { isAnswered: boolean }>();
  let requests = 0;
  let connections = 0;

  const server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    tls,
    idleTimeout: 120,
    fetch: async (request, listening) => {
      requests += 1;
      const isFirst = requests === 1;
      const { pathname, search } = new URL(request.url);
      const { method, headers } = request;
      const body = method === "POST" ? { body: await request.text() } : {};
      const stored = await fetch(target + pathname + search, { method, headers, ...body });
      const text = await stored.text();
      const wire = wires.get(listening.requestIP(request)?.port ?? 0);
      if (!isFirst || wire === undefined) return new Response(text, { status: stored.status });
      if (onStored !== undefined) {
        onStored(wire);
        await new Promise((closed) => wire.server.once("close", closed));
      }
      wire.isAnswered = true;
      return answer?.() ?? new Response(text, { status: stored.status });
    },
  });

  const box = createServer((client) => {
    connections += 1;
    if (isLasting && connections > 1) {
      client.end(plainText);
      return;
    }
    let [fromClient, fromServer] =
      connections <= BROKEN_HANDSHAKES ? [onHello, onHandshake] : [undefined, undefined];
    const wire = { client, server: connect(Number(server.port), "127.0.0.1"), isAnswered: false };
    wire.server.once("connect", () => wires.set(Number(wire.server.localPort), wire));
    client.on("data", (bytes: Buffer) => {
      if (fromClient === undefined) wire.server.write(bytes);
      else fromClient(wire, bytes);
      fromClient = undefined;
    });
    wire.server.on("data", (bytes: Buffer) => {
      const act = wire.isAnswered ? onAnswer : fromServer;
      if (act === undefined) client.write(bytes);
      else act(wire, bytes);
      fromServer = undefined;
    });
    client.on("close", () => wire.server.destroy());
    wire.server.on("close", () => client.end());
    for (const socket of [client, wire.server]) socket.on("error", () => {});
  });
  box.listen(0, "127.0.0.1");
  onCleanup(() => {
    box.close();
    void server.stop(true);
  });
  return `https://127.0.0.1:${(box.address() as AddressInfo).port}`;
}

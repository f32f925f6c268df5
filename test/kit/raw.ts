/** Bytes to a server as they are, and what comes back: for what no HTTP client would send or show. */
import { connect } from "node:net";

export interface RawResponse {
  readonly status: number;
  /** Names in lower case. */
  readonly headers: Record<string, string>;
  readonly body: string;
}

export interface Exchange {
  /** Interim responses (1xx) included. */
  readonly responses: RawResponse[];
  /** All that came back, as Latin-1. */
  readonly text: string;
  /** How it ended: the server closed or reset the connection, or it was still open at the end. */
  readonly end: "closed" | "reset" | "open";
}

export interface SendOptions {
  /** Ends our side of the connection after the last piece. */
  readonly halfClose?: boolean;
  /** Final responses to wait for before we close; more may come in the same piece. */
  readonly responses?: number;
}

/** A server that neither answers nor closes is left after this. */
const PATIENCE_MS = 2_000;

/** Sends pieces one after the other; a function is called with what came back so far, until it is true. */
export async function send(
  port: number,
  pieces: readonly (string | Uint8Array | ((text: string) => boolean))[],
  { halfClose = false, responses = 1 }: SendOptions = {},
): Promise<Exchange> {
  const { promise, resolve } = Promise.withResolvers<Exchange["end"]>();
  const socket = connect({ port, host: "127.0.0.1", allowHalfOpen: true });
  const received: Buffer[] = [];
  const text = (): string => Buffer.concat(received).toString("latin1");
  const state = { isOver: false };
  socket.setNoDelay(true);
  socket.on("data", (chunk: Buffer) => {
    received.push(chunk);
    const final = parseResponses(text()).filter(({ status }) => status >= 200);
    if (final.length >= responses && !asksToClose(final)) resolve("open");
  });
  socket.on("end", () => resolve("closed"));
  socket.on("close", () => resolve("closed"));
  socket.on("error", () => resolve("reset"));
  const patience = setTimeout(() => resolve("open"), PATIENCE_MS);
  void promise.then(() => (state.isOver = true));
  for (const piece of pieces) {
    if (state.isOver) break;
    if (typeof piece === "function") {
      while (!state.isOver && !piece(text())) await Bun.sleep(2);
    } else {
      socket.write(typeof piece === "string" ? Buffer.from(piece, "latin1") : piece);
      await Bun.sleep(1);
    }
  }
  if (halfClose) socket.end();
  const end = await promise;
  clearTimeout(patience);
  socket.destroy();
  return { responses: parseResponses(text()), text: text(), end };
}

/** Such a response is not complete before the end of the connection. */
function asksToClose(responses: readonly RawResponse[]): boolean {
  return responses.some(({ headers }) => headers["connection"] === "close");
}

/** Complete responses only. */
function parseResponses(text: string): RawResponse[] {
  const responses: RawResponse[] = [];
  for (let rest = text; ;) {
    const end = rest.indexOf("\r\n\r\n");
    if (end === -1) return responses;
    const [statusLine = "", ...lines] = rest.slice(0, end).split("\r\n");
    const headers = Object.fromEntries(
      lines.map((line) => {
        const colon = line.indexOf(":");
        return [line.slice(0, colon).toLowerCase(), line.slice(colon + 1).trim()];
      }),
    );
    const status = Number(/^HTTP\/1\.1 (\d{3})/.exec(statusLine)?.[1] ?? Number.NaN);
    const start = end + 4;
    const body = readBody(headers, rest.slice(start));
    if (body === null) return responses;
    responses.push({ status, headers, body: body.text });
    rest = rest.slice(start + body.length);
  }
}

interface Body {
  readonly text: string;
  /** Of the bytes that it was sent as. */
  readonly length: number;
}

/** Reads the body that a text begins with: it has a Content-Length, is chunked, or is empty. Null while it is not complete. */
export function readBody(headers: Record<string, string>, text: string): Body | null {
  if (headers["transfer-encoding"] === "chunked") return readChunks(text);
  const length = Number(headers["content-length"] ?? 0);
  return text.length < length ? null : { text: text.slice(0, length), length };
}

function readChunks(text: string): Body | null {
  let body = "";
  for (let at = 0; ;) {
    const lineEnd = text.indexOf("\r\n", at);
    if (lineEnd === -1) return null;
    const size = Number.parseInt(text.slice(at, lineEnd), 16);
    // Bun has found the rest of the request malformed, and answers that in the middle of our answer.
    if (Number.isNaN(size)) return { text: body, length: at };
    const start = lineEnd + 2;
    const end = start + size + 2;
    if (text.length < end) return null;
    if (size === 0) return { text: body, length: end };
    body += text.slice(start, start + size);
    at = end;
  }
}

/** Clients that keep their connections, and send the bytes that they are told to. */
import { connect, type Socket } from "node:net";
import { readBody } from "../_raw.ts";

export interface Reply {
  readonly status: number;
  readonly headers: Headers;
  /** As UTF-8. */
  readonly text: string;
}

/** `wait`: the next piece is only sent if the server has not answered those before it. */
export interface Message {
  readonly pieces: readonly Uint8Array[];
  readonly wait: boolean;
  /** An answer to HEAD has a length, and no body. */
  readonly isHead: boolean;
}

/** What it takes for a server on this machine to refuse a head; when it is short, more bytes are sent. */
const HEAD_START_MS = 20;

/** Works through the items on so many connections at once. */
export async function overConnections<T>(
  port: number,
  count: number,
  items: readonly T[],
  each: (connection: Connection, item: T) => Promise<void>,
): Promise<void> {
  const rest = items.values();
  await Promise.all(
    Array.from({ length: count }, async () => {
      const connection = new Connection(port);
      for (const item of rest) await each(connection, item);
      connection.close();
    }),
  );
}

export class Connection {
  readonly #port: number;
  #socket: Socket | null = null;
  #received: Buffer[] = [];
  #wake: () => void = () => {};

  constructor(port: number) {
    this.#port = port;
  }

  /** The answer, or null where the connection ends without one. */
  async exchange({ pieces, wait, isHead }: Message): Promise<Reply | null> {
    if (this.#received.length > 0)
      throw new Error("the server said something that nobody asked for");
    this.#socket ??= await this.#open();
    const socket = this.#socket;
    for (const [index, piece] of pieces.entries()) {
      if (wait && index > 0) await this.#change(HEAD_START_MS);
      if (this.#received.length > 0 || this.#socket !== socket) break;
      socket.write(piece);
    }
    for (;;) {
      const reply = this.#takeReply(isHead);
      if (reply?.headers.get("connection") === "close") this.close();
      if (reply !== null || this.#socket !== socket) return reply;
      await this.#change();
    }
  }

  close(): void {
    this.#socket?.destroy();
    this.#socket = null;
    this.#received = [];
  }

  #takeReply(isHead: boolean): Reply | null {
    const bytes = Buffer.concat(this.#received);
    const found = readReply(bytes, isHead);
    if (found === null) return null;
    const rest = bytes.subarray(found.length);
    this.#received = rest.length === 0 ? [] : [rest];
    return found.reply;
  }

  #open(): Promise<Socket> {
    return new Promise((opened, failed) => {
      const socket = connect({ port: this.#port, host: "127.0.0.1", noDelay: true });
      socket.on("connect", () => opened(socket));
      socket.on("data", (chunk: Buffer) => {
        this.#received.push(chunk);
        this.#wake();
      });
      // A reset is an end like any other here.
      socket.on("error", failed);
      socket.on("close", () => {
        if (this.#socket === socket) this.#socket = null;
        this.#wake();
      });
    });
  }

  #change(timeoutMs?: number): Promise<void> {
    return new Promise((changed) => {
      this.#wake = changed;
      if (timeoutMs !== undefined) setTimeout(changed, timeoutMs);
    });
  }
}

/** Null while it is not complete. */
function readReply(bytes: Buffer, isHead: boolean): { reply: Reply; length: number } | null {
  const end = bytes.indexOf("\r\n\r\n");
  if (end === -1) return null;
  const [statusLine = "", ...lines] = bytes.subarray(0, end).toString("latin1").split("\r\n");
  const headers = new Headers(
    lines.map((line): [string, string] => {
      const colon = line.indexOf(":");
      return [line.slice(0, colon), line.slice(colon + 1).trim()];
    }),
  );
  const status = Number(/^HTTP\/1\.1 (\d{3})/.exec(statusLine)?.[1]);
  const start = end + 4;
  const rest = bytes.subarray(start).toString("latin1");
  const body = isHead ? { text: "", length: 0 } : readBody(headers.toJSON(), rest);
  if (body === null) return null;
  const text = Buffer.from(body.text, "latin1").toString("utf8");
  return { reply: { status, headers, text }, length: start + body.length };
}

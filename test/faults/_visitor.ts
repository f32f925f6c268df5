/** A bare connection to the server, for programs that misbehave on it and for one that does not. */
import type { Socket } from "bun";

export interface Visitor {
  readonly socket: Socket;
  /** What was received since the last `forget`. */
  readonly received: () => string;
  readonly forget: () => void;
  /** Resolves at the next data and at the end of the connection. */
  readonly news: () => Promise<void>;
  readonly isClosed: () => boolean;
  readonly closed: Promise<void>;
}

/** Resolves when the connection is open, over TLS when it has shaken hands. Rejects where nobody is. */
export async function visit(url: string, options: { handshake: boolean }): Promise<Visitor> {
  const { hostname, port, protocol } = new URL(url);
  const isTls = protocol === "https:" && options.handshake;
  const open = Promise.withResolvers<void>();
  const closed = Promise.withResolvers<void>();
  let received = "";
  let isClosed = false;
  let news = Promise.withResolvers<void>();
  const tell = (): void => {
    news.resolve();
    news = Promise.withResolvers();
  };
  const close = (): void => {
    isClosed = true;
    closed.resolve();
    open.reject(new Error("closed"));
    tell();
  };
  const socket = await Bun.connect({
    hostname,
    port: Number(port),
    ...(isTls ? { tls: { rejectUnauthorized: false } } : {}),
    socket: {
      open: () => (isTls ? undefined : open.resolve()),
      handshake: () => open.resolve(),
      data: (_socket, data) => {
        received += data.toString("latin1");
        tell();
      },
      close,
      error: close,
    },
  });
  await open.promise;
  return {
    socket,
    received: () => received,
    forget: () => (received = ""),
    news: () => news.promise,
    isClosed: () => isClosed,
    closed: closed.promise,
  };
}

/** A request for one signal. */
export function request(url: string, key: string, clientId: string): string {
  const body = `{"source":"venue_2","type":"crypto","symbol":"BTC/USDT","side":"open","client_signal_id":"${clientId}"}`;
  return `${head(url, key)}Content-Length: ${body.length}\r\n\r\n${body}`;
}

/** The headers of such a request, but for those of its body's length. */
export function head(url: string, key: string): string {
  return `POST /v1/signals HTTP/1.1\r\nHost: ${new URL(url).host}\r\nAuthorization: Bearer ${key}\r\nContent-Type: application/json\r\n`;
}

/** Aborted when whoever started this program closes its stdin. */
export function stdinEnded(): AbortSignal {
  const end = new AbortController();
  void (async () => {
    for await (const _ of Bun.stdin.stream()) void _;
    end.abort();
  })();
  return end.signal;
}

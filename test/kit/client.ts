/**
 * A program that sends signals over a number of plain sockets, one after the other on each, without
 * hidden retries. It prints a JSON line per request, and ends with its stdin. `load.ts` starts it.
 */
import { connect as connectTcp, type Socket } from "node:net";
import { connect as connectTls } from "node:tls";

export interface LoadOptions {
  readonly url: string;
  readonly key: string;
  readonly connections: number;
  /** `keep`: connections are kept; `fresh`: one per request; `mixed`: half of each. */
  readonly reuse: "keep" | "fresh" | "mixed";
  /** Signals without an answer are sent again with the same id until they have one. */
  readonly retry: boolean;
  /** The prefix of the client_signal_ids. */
  readonly prefix: string;
  /** The pause before a 503 is retried with the same id; null: it is not retried. */
  readonly pauseAfter503Ms: number | null;
  /** Characters of metadata per signal; 0: no metadata. */
  readonly metadataChars: number;
  /** How many connections send the same signal at the same moment. */
  readonly copies: number;
  /** The pause between an answer and the next signal. */
  readonly pauseMs: number;
}

export interface LoadResult {
  readonly clientId: string;
  /** The status; `refused`: no connection, nothing was sent; `broken`: sent, but not answered. */
  readonly outcome: number | "refused" | "broken";
  /** The signal's id. */
  readonly id: string | null;
  /** How often this signal was sent before without an answer. */
  readonly unanswered: number;
  /**
   * With `broken`: the request may have arrived after the end of its connection. Either the server closed
   * a kept connection in good order (a close with unread bytes would have been a reset), or this process
   * was too slow to send the first request of a new one.
   */
  readonly maybeUnsent?: true;
}

const PAUSE_WHEN_REFUSED_MS = 5;
/** Less than a stopping server waits for a new connection's first request (src/http/listener.ts). */
const FIRST_REQUEST_MS_MAX = 400;

/** One client's connection, which may not be open. */
class Connection {
  readonly #options: LoadOptions;
  #socket: Socket | null = null;
  #received = "";
  #isKept = false;
  #hasEnded = false;
  #openedAt = 0;
  #isLate = false;
  #onChange: () => void = () => {};

  constructor(options: LoadOptions) {
    this.#options = options;
  }

  /** Returns false if nobody listens. */
  async open(): Promise<boolean> {
    if (this.#socket !== null) return true;
    const { hostname, port, protocol } = new URL(this.#options.url);
    const isTls = protocol === "https:";
    // A URL leaves out the port that its protocol implies.
    const address = { host: hostname, port: Number(port) || (isTls ? 443 : 80) };
    this.#openedAt = performance.now();
    return new Promise((resolve) => {
      const socket = isTls
        ? connectTls({ ...address, rejectUnauthorized: false })
        : connectTcp(address);
      socket.setNoDelay(true);
      socket.once(isTls ? "secureConnect" : "connect", () => {
        this.#socket = socket;
        this.#received = "";
        this.#isKept = false;
        this.#hasEnded = false;
        resolve(true);
      });
      socket.on("data", (chunk: Buffer) => {
        this.#received += chunk.toString("latin1");
        this.#onChange();
      });
      socket.on("end", () => (this.#hasEnded = true));
      socket.on("error", () => {});
      socket.on("close", () => {
        if (this.#socket === socket) this.#socket = null;
        this.#onChange();
        resolve(false);
      });
    });
  }

  /** After {@link send} without an answer. */
  get maybeUnsent(): boolean {
    return this.#received === "" && (this.#isKept ? this.#hasEnded : this.#isLate);
  }

  close(): void {
    this.#socket?.destroy();
    this.#socket = null;
  }

  /** Sends a request on the open connection; returns null if it ends without an answer. */
  async send(request: string): Promise<{ status: number; body: string } | null> {
    const socket = this.#socket;
    if (socket === null) return null;
    this.#received = "";
    socket.write(request);
    this.#isLate = performance.now() - this.#openedAt > FIRST_REQUEST_MS_MAX;
    while (true) {
      const answer = readAnswer(this.#received);
      if (answer !== null) {
        this.#isKept = true;
        if (answer.isLast) this.close();
        return answer;
      }
      if (this.#socket !== socket) return null;
      await new Promise<void>((changed) => (this.#onChange = changed));
    }
  }
}

function readAnswer(text: string): { status: number; body: string; isLast: boolean } | null {
  const end = text.indexOf("\r\n\r\n");
  if (end < 0) return null;
  const head = text.slice(0, end);
  const length = Number(/^content-length: (\d+)$/im.exec(head)?.[1] ?? 0);
  const body = text.slice(end + 4, end + 4 + length);
  if (body.length < length) return null;
  return {
    status: Number(head.split(" ", 2)[1]),
    body,
    isLast: /^connection: close$/im.test(head),
  };
}

/** One bot, or several that send the same. */
async function runGroup(
  options: LoadOptions,
  group: number,
  isEnding: () => boolean,
): Promise<void> {
  const { copies, pauseMs, prefix } = options;
  const clients = Array.from(
    { length: copies },
    (_, copy) => new Client(options, group * copies + copy, isEnding),
  );
  for (let count = 0; !isEnding(); count++) {
    const clientId = `${prefix}-${group}-${count}`;
    await Promise.all(clients.map((client) => client.deliver(clientId)));
    if (pauseMs > 0) await Bun.sleep(pauseMs);
  }
  for (const client of clients) client.close();
}

class Client {
  readonly #options: LoadOptions;
  readonly #isFresh: boolean;
  readonly #isEnding: () => boolean;
  readonly #connection: Connection;

  constructor(options: LoadOptions, number: number, isEnding: () => boolean) {
    const { reuse } = options;
    this.#options = options;
    this.#isFresh = reuse === "fresh" || (reuse === "mixed" && number % 2 === 1);
    this.#isEnding = isEnding;
    this.#connection = new Connection(options);
  }

  /** Sends a signal, with the retries asked for, and prints each outcome. */
  async deliver(clientId: string): Promise<void> {
    const { pauseAfter503Ms, retry } = this.#options;
    const request = requestFor(clientId, this.#options);
    for (let unanswered = 0; ;) {
      const isOpen = await this.#connection.open();
      const answer = isOpen ? await this.#connection.send(request) : null;
      const outcome = answer?.status ?? (isOpen ? "broken" : "refused");
      const id = answer === null ? null : ((JSON.parse(answer.body) as { id?: string }).id ?? null);
      const isMaybeUnsent = outcome === "broken" && this.#connection.maybeUnsent;
      print({ clientId, outcome, id, unanswered, ...(isMaybeUnsent ? { maybeUnsent: true } : {}) });
      if (outcome === "broken") unanswered += 1;
      if (outcome === "refused") await Bun.sleep(PAUSE_WHEN_REFUSED_MS);
      if (this.#isFresh) this.close();
      const isAgain = outcome === 503 ? pauseAfter503Ms !== null : answer === null && retry;
      if (!isAgain || this.#isEnding()) break;
      if (outcome === 503) await Bun.sleep(pauseAfter503Ms ?? 0);
    }
  }

  close(): void {
    this.#connection.close();
  }
}

function requestFor(clientId: string, { key, metadataChars, url }: LoadOptions): string {
  const metadata = metadataChars === 0 ? "" : `,"metadata":{"note":"${"x".repeat(metadataChars)}"}`;
  const body = `{"source":"venue_2","type":"crypto","symbol":"BTC/USDT","side":"open","client_signal_id":"${clientId}"${metadata}}`;
  return `POST /v1/signals HTTP/1.1\r\nHost: ${new URL(url).host}\r\nAuthorization: Bearer ${key}\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`;
}

function print(result: LoadResult): void {
  process.stdout.write(`${JSON.stringify(result)}\n`);
}

if (import.meta.main) {
  const options = JSON.parse(process.argv[2] ?? "") as LoadOptions;
  let isEnding = false;
  void Bun.stdin.text().then(() => (isEnding = true));
  await Promise.all(
    Array.from({ length: options.connections / options.copies }, (_, group) =>
      runGroup(options, group, () => isEnding),
    ),
  );
}

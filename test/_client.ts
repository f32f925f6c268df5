/**
 * A program: as many connections as it is told, each sending one signal after the other over a plain
 * socket, so that nothing is retried behind our back. It prints a JSON line a request, and ends when
 * its stdin does. Tests start it with `_load.ts`.
 */
import { connect as connectTcp, type Socket } from "node:net";
import { connect as connectTls } from "node:tls";

export interface LoadOptions {
  readonly url: string;
  readonly key: string;
  readonly connections: number;
  /** `keep`: as long as the server lets us; `fresh`: a connection a request; `mixed`: half of each. */
  readonly reuse: "keep" | "fresh" | "mixed";
  /** Signals without an answer are sent again, with the same id, until they have one. */
  readonly retry: boolean;
  /** Of the client_signal_ids. */
  readonly prefix: string;
  /** A 503 is retried with the same id after so long; null: it is the answer, and the next signal's turn. */
  readonly pauseAfter503Ms: number | null;
  /** Each signal has metadata of about so many characters; 0: it has none. */
  readonly metadataChars: number;
}

export interface LoadResult {
  readonly clientId: string;
  /** The status; `refused`: no connection, so nothing was sent; `broken`: it was sent, and has no answer. */
  readonly outcome: number | "refused" | "broken";
  /** The signal's. */
  readonly id: string | null;
  /** How often this signal was sent before without an answer. */
  readonly unanswered: number;
}

const PAUSE_WHEN_REFUSED_MS = 5;

/** One client's connection to the server, or none yet. */
class Connection {
  readonly #options: LoadOptions;
  #socket: Socket | null = null;
  #received = "";
  #onChange: () => void = () => {};

  constructor(options: LoadOptions) {
    this.#options = options;
  }

  /** False where there is nobody. */
  async open(): Promise<boolean> {
    if (this.#socket !== null) return true;
    const { hostname, port, protocol } = new URL(this.#options.url);
    const isTls = protocol === "https:";
    const address = { host: hostname, port: Number(port) };
    return new Promise((resolve) => {
      const socket = isTls
        ? connectTls({ ...address, rejectUnauthorized: false })
        : connectTcp(address);
      socket.setNoDelay(true);
      socket.once(isTls ? "secureConnect" : "connect", () => {
        this.#socket = socket;
        this.#received = "";
        resolve(true);
      });
      socket.on("data", (chunk: Buffer) => {
        this.#received += chunk.toString("latin1");
        this.#onChange();
      });
      socket.on("error", () => {});
      socket.on("close", () => {
        if (this.#socket === socket) this.#socket = null;
        this.#onChange();
        resolve(false);
      });
    });
  }

  close(): void {
    this.#socket?.destroy();
    this.#socket = null;
  }

  /** Sends a request on the open connection; null where it ends without an answer. */
  async send(request: string): Promise<{ status: number; body: string } | null> {
    const socket = this.#socket;
    if (socket === null) return null;
    this.#received = "";
    socket.write(request);
    while (true) {
      const answer = readAnswer(this.#received);
      if (answer !== null) {
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

async function runClient(
  options: LoadOptions,
  number: number,
  isEnding: () => boolean,
): Promise<void> {
  const { key, prefix, url, reuse, retry, pauseAfter503Ms, metadataChars } = options;
  const metadata = metadataChars === 0 ? "" : `,"metadata":{"note":"${"x".repeat(metadataChars)}"}`;
  const isFresh = reuse === "fresh" || (reuse === "mixed" && number % 2 === 1);
  const connection = new Connection(options);
  for (let count = 0; !isEnding(); count++) {
    const clientId = `${prefix}-${number}-${count}`;
    const body = `{"source":"venue_2","type":"crypto","symbol":"BTC/USDT","side":"open","client_signal_id":"${clientId}"${metadata}}`;
    const request = `POST /v1/signals HTTP/1.1\r\nHost: ${new URL(url).host}\r\nAuthorization: Bearer ${key}\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`;
    for (let unanswered = 0; ;) {
      const isOpen = await connection.open();
      const answer = isOpen ? await connection.send(request) : null;
      const outcome = answer?.status ?? (isOpen ? "broken" : "refused");
      const id = answer === null ? null : ((JSON.parse(answer.body) as { id?: string }).id ?? null);
      process.stdout.write(`${JSON.stringify({ clientId, outcome, id, unanswered })}\n`);
      if (outcome === "broken") unanswered += 1;
      if (outcome === "refused") await Bun.sleep(PAUSE_WHEN_REFUSED_MS);
      if (isFresh) connection.close();
      const isAgain = outcome === 503 ? pauseAfter503Ms !== null : answer === null && retry;
      if (!isAgain || isEnding()) break;
      if (outcome === 503) await Bun.sleep(pauseAfter503Ms ?? 0);
    }
  }
  connection.close();
}

if (import.meta.main) {
  const options = JSON.parse(process.argv[2] ?? "") as LoadOptions;
  let isEnding = false;
  void Bun.stdin.text().then(() => (isEnding = true));
  await Promise.all(
    Array.from({ length: options.connections }, (_, number) =>
      runClient(options, number, () => isEnding),
    ),
  );
}

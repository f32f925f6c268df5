/** One connection of the open loop's client, with at most one request on its way. */
import type { Socket } from "bun";

type OnAnswer = () => void;

export class OpenConnection {
  #socket: Socket | null = null;
  #onAnswer: OnAnswer | null = null;
  #answer = "";

  static async open(port: number): Promise<OpenConnection> {
    const connection = new OpenConnection();
    connection.#socket = await Bun.connect({
      hostname: "127.0.0.1",
      port,
      socket: {
        data: (_socket, bytes) => connection.#read(bytes.toString("latin1")),
        close: () => fail("the server closed a connection"),
        error: (_socket, error) => fail(error.message),
      },
    });
    return connection;
  }

  /** To be called again only after `onAnswer` was. */
  send(request: string, onAnswer: OnAnswer): void {
    this.#onAnswer = onAnswer;
    const written = this.#socket?.write(request);
    if (written !== request.length) fail("a request did not fit into the socket's buffer");
  }

  #read(text: string): void {
    this.#answer += text;
    const headEnd = this.#answer.indexOf("\r\n\r\n");
    if (headEnd === -1) return;
    const head = this.#answer.slice(0, headEnd);
    const bodyBytes = Number(/^content-length: *(\d+)/im.exec(head)?.[1] ?? Number.NaN);
    if (Number.isNaN(bodyBytes)) fail(`an answer of unknown length: ${head}`);
    if (this.#answer.length < headEnd + 4 + bodyBytes) return;
    this.#answer = "";
    const onAnswer = this.#onAnswer;
    this.#onAnswer = null;
    if (!head.startsWith("HTTP/1.1 201 ")) fail(`a signal was refused: ${head}`);
    onAnswer?.();
  }
}

/** Whatever it is, the run is worth nothing. */
function fail(what: string): never {
  process.stderr.write(`open loop: ${what}\n`);
  process.exit(1);
}

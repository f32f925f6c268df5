/**
 * Clients that send expensive requests, in a process of their own: one after the other on each connection.
 * The program prints a line when each connection has had an answer. When stdin ends, it prints how many
 * answers had which status since then, as JSON, and exits.
 */
import { connect } from "node:net";
import { startChild } from "../../kit/child.ts";

interface NeighbourOptions {
  readonly port: number;
  readonly readPort: number;
  readonly key: string;
  readonly readKey: string;
  readonly kind: Kind;
}

const CONNECTIONS = 4;
const BODY_BYTES = 64_000;

const fields = `"source":"venue_2","type":"crypto","symbol":"BTC/USDT","side":"open"`;

/** Members or items up to the size of a body. */
function many(item: (index: number) => string): string[] {
  const items: string[] = [];
  for (let bytes = 0; bytes < BODY_BYTES; bytes += (items.at(-1)?.length ?? 0) + 1) {
    items.push(item(items.length));
  }
  return items;
}

const names = many((index) => `"name${index}":1`);
const inMetadata = (members: readonly string[]): string =>
  `{${fields},"metadata":{${members.join()}}}`;
const repeat = (text: string): string => text.repeat(Math.floor(BODY_BYTES / text.length));

/** Bodies of `POST /v1/signals`. */
const bodies = {
  "a long text": `{${fields},"metadata":{"note":"${repeat("x")}"}}`,
  "many names in metadata": inMetadata(names),
  "unknown names": `{${fields},${names.join()}}`,
  "unknown names that are close to a field": `{${fields},${many((index) => `"symbo${index}":1`).join()}}`,
  "unknown escaped names of objects": `{${fields},${many((index) => `"\\n${index}":{}`).join()}}`,
  "a duplicate name at the end": inMetadata([...names, `"name0":2`]),
  "deep nesting": `{"metadata":${"[".repeat(30_000)}${"]".repeat(30_000)}}`,
  "brackets that do not close": `{"metadata":${"[".repeat(BODY_BYTES)}`,
  "empty arrays": inMetadata([`"a":[${many(() => "[]").join()}]`]),
  escapes: inMetadata([`"a":"${repeat("\\u0000")}"`]),
  surrogates: inMetadata([`"a":[${many(() => String.raw`"\ud83d\ude00"`).join()}]`]),
  digits: `{${fields},"price":1${"0".repeat(200)}.${repeat("1")}}`,
} as const;

const requests = {
  "a query of 7,000 parameters": ({ readKey }: NeighbourOptions) =>
    `GET /feed?${"a&".repeat(7_000)} HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${readKey}\r\n\r\n`,
  "chunks of one byte": ({ key }: NeighbourOptions) =>
    `POST /v1/signals HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${key}\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n${"1\r\n \r\n".repeat(10_000)}0\r\n\r\n`,
  "chunks of one byte without a key": () =>
    `POST /v1/signals HTTP/1.1\r\nHost: a\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n${"1\r\n \r\n".repeat(10_000)}0\r\n\r\n`,
  "commas in X-Forwarded-For": () =>
    `POST /v1/signals HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: ${" ,".repeat(7_000)}\r\nContent-Length: 0\r\n\r\n`,
  "parameters of the media type": ({ key }: NeighbourOptions) =>
    `POST /v1/signals HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${key}\r\nContent-Type: application/json${Array.from({ length: 1_800 }, (_, index) => `;k${index}=v`).join("")}\r\nContent-Length: 0\r\n\r\n`,
} as const;

const REORDERED = "a duplicate with its members in another order";

export type Kind = keyof typeof bodies | keyof typeof requests | typeof REORDERED;

/** What an honest bot may send. */
export const controls: readonly Kind[] = ["a long text", "many names in metadata"];
export const hostile = [...Object.keys(bodies), ...Object.keys(requests), REORDERED].filter(
  (kind) => !(controls as readonly string[]).includes(kind),
) as readonly Kind[];

/** The request that is sent for the nth time. */
function requestOf(options: NeighbourOptions, count: number): string {
  const { kind, key } = options;
  if (Object.hasOwn(requests, kind)) return requests[kind as keyof typeof requests](options);
  const body =
    kind === REORDERED
      ? inMetadata(count === 0 ? names : names.toReversed()).replace(
          "{",
          '{"client_signal_id":"one",',
        )
      : bodies[kind as keyof typeof bodies];
  return `POST /v1/signals HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${key}\r\nContent-Type: application/json\r\nContent-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`;
}

export async function startNeighbours(options: NeighbourOptions) {
  const child = startChild(import.meta.path, options);
  const output = child.stdout.pipeThrough(new TextDecoderStream()).getReader();
  await output.read();
  return {
    end: async () => {
      await child.stdin.end();
      const { value = "{}" } = await output.read();
      return JSON.parse(value) as Record<string, number>;
    },
  };
}

async function run(options: NeighbourOptions): Promise<Record<string, number>> {
  const statuses: Record<string, number> = {};
  const state = { isEnding: false, answered: 0 };
  const port = options.kind === "a query of 7,000 parameters" ? options.readPort : options.port;
  const [first, other] = [0, 1].map((count) => Buffer.from(requestOf(options, count)));
  const open = (): Promise<void> => {
    const over = Promise.withResolvers<void>();
    let text = "";
    const socket = connect(port, "127.0.0.1", () => socket.write(first ?? ""));
    socket.on("data", (chunk: Buffer) => {
      text += chunk.toString("latin1");
      const head = text.indexOf("\r\n\r\n");
      const length = Number(/^content-length: (\d+)/im.exec(text)?.[1]);
      if (head === -1 || text.length < head + 4 + length) return;
      const status = text.slice(9, 12);
      state.answered += 1;
      if (state.answered === CONNECTIONS) process.stdout.write("ready\n");
      if (state.answered > CONNECTIONS) statuses[status] = (statuses[status] ?? 0) + 1;
      text = "";
      if (state.isEnding) socket.end();
      else socket.write(other ?? "");
    });
    socket.on("error", () => {});
    socket.on("close", over.resolve);
    return over.promise;
  };
  void Bun.stdin.text().then(() => (state.isEnding = true));
  const lane = async (): Promise<void> => {
    while (!state.isEnding) await open();
  };
  await Promise.all(Array.from({ length: CONNECTIONS }, lane));
  return statuses;
}

if (import.meta.main) {
  const statuses = await run(JSON.parse(process.argv[2] ?? "") as NeighbourOptions);
  await Bun.write(Bun.stdout, `${JSON.stringify(statuses)}\n`);
  process.exit(0);
}

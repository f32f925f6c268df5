/**
 * A program: a crowd of clients of one bad kind, each on a connection of its own, and on a new one when
 * that is over. When its stdin ends it prints what came of them as one line of JSON, and goes. Tests
 * start it with `_crowd.ts`.
 */
import { head, request, stdinEnded, type Visitor, visit } from "./_visitor.ts";

/**
 * `idle`: open a connection, send little or nothing, wait for its end. `held`: the same, but send as
 * much as keeps it open longest. `slow`: a byte at a time.
 * `rude`: pipelining without reading, half-closing and aborting, before and after the last byte.
 */
export type GuestKind = "idle" | "held" | "slow" | "rude";

export interface GuestOptions {
  readonly url: string;
  readonly key: string;
  readonly kind: GuestKind;
  readonly guests: number;
  /** Between the end of a connection and the next one of the same guest. */
  readonly pauseMs: number;
}

export interface GuestResult {
  /** Connections that were opened, and attempts that failed. */
  opened: number;
  refused: number;
  /** Of each behaviour of the kind, in its order: connections that came to their end. */
  readonly closed: number[];
}

type Behaviour = (visitor: Visitor, clientId: string) => Promise<void>;

const SLOW_INTERVAL_MS = 1_000;
const PIPELINED = 20;

function write({ socket }: Visitor, text: string): void {
  socket.write(text);
}

async function slowly(visitor: Visitor, text: string): Promise<void> {
  for (const byte of text) {
    if (visitor.isClosed()) return;
    write(visitor, byte);
    await Promise.race([Bun.sleep(SLOW_INTERVAL_MS), visitor.closed]);
  }
}

function behaviours({ url, key, kind }: GuestOptions): { handshake: boolean; act: Behaviour }[] {
  const isTls = url.startsWith("https:");
  const half = (clientId: string): string => request(url, key, clientId).slice(0, -20);
  const chunks = "5\r\n     \r\n".repeat(1_000);
  const all: Record<GuestKind, { handshake: boolean; act: Behaviour }[]> = {
    idle: [
      { handshake: false, act: async () => {} },
      { handshake: true, act: async () => {} },
      { handshake: true, act: async (visitor) => write(visitor, head(url, key)) },
      { handshake: true, act: async (visitor, id) => write(visitor, request(url, key, id)) },
      { handshake: true, act: async (visitor, id) => write(visitor, half(id)) },
    ],
    held: [
      { handshake: true, act: async (visitor, id) => write(visitor, request(url, key, id)) },
      { handshake: true, act: async (visitor, id) => write(visitor, half(id)) },
    ],
    slow: [
      {
        handshake: true,
        act: (visitor) => slowly(visitor, `${head(url, key)}X: ${"x".repeat(99)}`),
      },
      {
        handshake: true,
        act: async (visitor) => {
          write(visitor, `${head(url, key)}Content-Length: 1000\r\n\r\n`);
          await slowly(visitor, " ".repeat(999));
        },
      },
      {
        handshake: true,
        act: async (visitor) => {
          write(visitor, `${head(url, key)}Transfer-Encoding: chunked\r\n\r\n`);
          await slowly(visitor, chunks);
        },
      },
      // The first bytes of a ClientHello that says it has 512.
      {
        handshake: false,
        act: (visitor) =>
          slowly(visitor, `${isTls ? "\x16\x03\x01\x02\x00" : ""}${"\x01".repeat(99)}`),
      },
    ],
    rude: [
      {
        handshake: true,
        act: async (visitor, id) => {
          visitor.socket.pause();
          const many = Array.from({ length: PIPELINED }, (_, n) => request(url, key, `${id}-${n}`));
          write(visitor, many.join(""));
          await Bun.sleep(100);
          visitor.socket.terminate();
        },
      },
      {
        handshake: true,
        act: async (visitor, id) => {
          write(visitor, request(url, key, id));
          visitor.socket.shutdown();
        },
      },
      {
        handshake: true,
        act: async (visitor, id) => {
          write(visitor, half(id));
          visitor.socket.shutdown();
        },
      },
      {
        handshake: true,
        act: async (visitor, id) => {
          write(visitor, request(url, key, id));
          await Bun.sleep(id.length % 4);
          visitor.socket.terminate();
        },
      },
      {
        handshake: true,
        act: async (visitor, id) => {
          write(visitor, half(id));
          await Bun.sleep(1);
          visitor.socket.terminate();
        },
      },
      { handshake: false, act: async (visitor) => visitor.socket.terminate() },
    ],
  };
  return all[kind];
}

async function run(options: GuestOptions): Promise<GuestResult> {
  const kinds = behaviours(options);
  const result: GuestResult = { opened: 0, refused: 0, closed: kinds.map(() => 0) };
  const end = stdinEnded();
  const ending = new Promise<void>((ended) => end.addEventListener("abort", () => ended()));
  const guest = async (number: number): Promise<void> => {
    const behaviour = number % kinds.length;
    const { handshake, act } = kinds[behaviour] ?? { handshake: true, act: async () => {} };
    for (let count = 0; !end.aborted; count++) {
      try {
        const visitor = await visit(options.url, { handshake });
        result.opened += 1;
        await act(visitor, `guest-${process.pid}-${number}-${count}`);
        await Promise.race([visitor.closed, ending]);
        if (visitor.isClosed()) result.closed[behaviour] = (result.closed[behaviour] ?? 0) + 1;
      } catch {
        result.refused += 1;
      }
      await Promise.race([Bun.sleep(options.pauseMs), ending]);
    }
  };
  for (let number = 0; number < options.guests; number++) void guest(number);
  await ending;
  return result;
}

if (import.meta.main) {
  const result = await run(JSON.parse(process.argv[2] ?? "") as GuestOptions);
  await Bun.write(Bun.stdout, `${JSON.stringify(result)}\n`);
  process.exit(0);
}

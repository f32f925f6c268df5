/**
 * Clients that misbehave, in a process of their own. As a program: each guest has a connection, and a
 * new one when that is over; when stdin ends, the program prints what happened as JSON and exits.
 */
import { once } from "node:events";
import { connect as connectTcp, type Socket } from "node:net";
import { connect as connectTls } from "node:tls";
import { startChild } from "../../kit/child.ts";

/**
 * `idle`: opens a connection, sends nothing or a part, waits for its end. `held`: sends what keeps a
 * connection open longest. `slow`: sends a byte per second. `rude`: pipelines without reading,
 * half-closes and aborts.
 */
type Kind = "idle" | "held" | "slow" | "rude";

export interface GuestOptions {
  readonly url: string;
  readonly key: string;
  readonly kind: Kind;
  readonly guests: number;
  /** Between the end of a guest's connection and its next one. */
  readonly pauseMs: number;
}

export interface GuestResult {
  opened: number;
  /** Connections that ended, by the behaviours of the kind in their order. */
  readonly closed: number[];
}

export function startGuests(options: GuestOptions): { end: () => Promise<GuestResult> } {
  const child = startChild(import.meta.path, options);
  return {
    end: async () => {
      await child.stdin.end();
      return JSON.parse(await new Response(child.stdout).text()) as GuestResult;
    },
  };
}

interface Behaviour {
  readonly handshake?: false;
  readonly act: (socket: Socket, clientId: string) => unknown;
}

const SLOW_INTERVAL_MS = 1_000;

/** Resolves when the connection is open, over TLS when the handshake is done. */
async function connect(url: string, handshake: boolean): Promise<Socket> {
  const { hostname: host, port, protocol } = new URL(url);
  const isTls = protocol === "https:" && handshake;
  const address = { host, port: Number(port) };
  const socket = isTls
    ? connectTls({ ...address, rejectUnauthorized: false })
    : connectTcp(address);
  socket.resume().on("error", () => {});
  await once(socket, isTls ? "secureConnect" : "connect");
  return socket;
}

async function slowly(socket: Socket, text: string): Promise<void> {
  for (const byte of text) {
    if (socket.closed) return;
    socket.write(byte);
    await Bun.sleep(SLOW_INTERVAL_MS);
  }
}

function behavioursOf({ url, key, kind }: GuestOptions): Behaviour[] {
  const head = `POST /v1/signals HTTP/1.1\r\nHost: ${new URL(url).host}\r\nAuthorization: Bearer ${key}\r\nContent-Type: application/json\r\n`;
  const whole = (id: string): string => {
    const body = `{"source":"venue_2","type":"crypto","symbol":"BTC/USDT","side":"open","client_signal_id":"${id}"}`;
    return `${head}Content-Length: ${body.length}\r\n\r\n${body}`;
  };
  const half = (id: string): string => whole(id).slice(0, -20);
  const sendWhole: Behaviour = { act: (socket, id) => socket.write(whole(id)) };
  const sendHalf: Behaviour = { act: (socket, id) => socket.write(half(id)) };
  const all: Record<Kind, Behaviour[]> = {
    idle: [
      { handshake: false, act: () => {} },
      { act: () => {} },
      { act: (socket) => socket.write(head) },
      sendWhole,
      sendHalf,
    ],
    held: [sendWhole, sendHalf],
    slow: [
      { act: (socket) => slowly(socket, `${head}X: ${"x".repeat(99)}`) },
      {
        act: (socket) => {
          socket.write(`${head}Content-Length: 1000\r\n\r\n`);
          return slowly(socket, " ".repeat(999));
        },
      },
      {
        act: (socket) => {
          socket.write(`${head}Transfer-Encoding: chunked\r\n\r\n`);
          return slowly(socket, "5\r\n     \r\n".repeat(1_000));
        },
      },
      // The first bytes of a ClientHello of 512 bytes.
      {
        handshake: false,
        act: (socket) => slowly(socket, `\x16\x03\x01\x02\x00${"\x01".repeat(99)}`),
      },
    ],
    rude: [
      {
        act: async (socket, id) => {
          socket.pause();
          socket.write(Array.from({ length: 20 }, (_, count) => whole(`${id}-${count}`)).join(""));
          await Bun.sleep(100);
          socket.resetAndDestroy();
        },
      },
      ...[whole, half].map((text) => ({
        act: (socket: Socket, id: string) => {
          socket.write(text(id));
          socket.end();
        },
      })),
      ...[whole, half].map((text) => ({
        act: async (socket: Socket, id: string) => {
          socket.write(text(id));
          await Bun.sleep(id.length % 4);
          socket.resetAndDestroy();
        },
      })),
      { handshake: false, act: (socket) => socket.resetAndDestroy() },
    ],
  };
  return all[kind];
}

async function run(options: GuestOptions): Promise<GuestResult> {
  const behaviours = behavioursOf(options);
  const result: GuestResult = { opened: 0, closed: behaviours.map(() => 0) };
  const state = { isEnding: false };
  const ending = Bun.stdin.text().then(() => (state.isEnding = true));
  const guest = async (number: number): Promise<void> => {
    const index = number % behaviours.length;
    const { handshake, act } = behaviours[index] as Behaviour;
    for (let count = 0; !state.isEnding; count += 1) {
      const open = await connect(options.url, handshake ?? true).catch(() => null);
      if (open !== null) {
        result.opened += 1;
        await act(open, `guest-${process.pid}-${number}-${count}`);
        if (!open.closed) await Promise.race([once(open, "close"), ending]);
        if (open.closed) result.closed[index] = (result.closed[index] ?? 0) + 1;
      }
      await Promise.race([Bun.sleep(options.pauseMs), ending]);
    }
  };
  for (let number = 0; number < options.guests; number += 1) void guest(number);
  await ending;
  return result;
}

if (import.meta.main) {
  const result = await run(JSON.parse(process.argv[2] ?? "") as GuestOptions);
  await Bun.write(Bun.stdout, `${JSON.stringify(result)}\n`);
  process.exit(0);
}

/** A TCP proxy before a database that can fail. */
import { connect, createServer, type Socket } from "node:net";
import type { AddressInfo } from "node:net";
import { onCleanup } from "../../kit/setup.ts";

export interface Gate {
  /** The URL of the database through the gate. */
  readonly url: string;
  /** Cuts connections, and refuses new ones. */
  readonly shut: () => void;
  /** Passes nothing on, in connections that stay open. */
  readonly freeze: () => void;
  readonly open: () => void;
  /** Cuts the connection that next sends a statement with this text, when its answer arrives: nobody gets that. */
  readonly loseAnswerTo: (text: string) => void;
}

export async function startGate(database: string): Promise<Gate> {
  const target = new URL(database);
  const sockets = new Set<Socket>();
  let isFrozen = false;
  let lost: string | null = null;
  const server = createServer((client) => {
    const upstream = connect(Number(target.port), target.hostname);
    let isLosing = false;
    const cut = (): void => {
      client.destroy();
      upstream.destroy();
    };
    for (const socket of [client, upstream]) {
      sockets.add(socket);
      socket.on("error", () => {}).on("close", cut);
      if (isFrozen) socket.pause();
    }
    client.on("data", (bytes) => {
      if (lost !== null && bytes.toString("latin1").includes(lost)) {
        lost = null;
        isLosing = true;
      }
      upstream.write(bytes);
    });
    upstream.on("data", (bytes) => {
      // The last message of an answer: ready for the next, outside a transaction.
      if (isLosing && bytes.toString("latin1").includes("Z\0\0\0\u0005I")) cut();
      else if (!isLosing) client.write(bytes);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onCleanup(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  const url = new URL(database);
  url.port = String(port);
  return {
    url: url.href,
    shut() {
      server.close();
      for (const socket of sockets) socket.destroy();
    },
    freeze() {
      isFrozen = true;
      for (const socket of sockets) socket.pause();
    },
    open() {
      isFrozen = false;
      for (const socket of sockets) socket.resume();
      if (!server.listening) server.listen(port, "127.0.0.1");
    },
    loseAnswerTo: (text) => void (lost = text),
  };
}

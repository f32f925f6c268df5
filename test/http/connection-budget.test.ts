/** The listeners share the process's descriptors, and the public interface has a share of its own. */
import { expect, test } from "bun:test";
import { connect, type Socket } from "node:net";
import { pino } from "pino";
import { planConnections } from "../../src/http/limits/connections.ts";
import { scrape } from "../ops/_metrics.ts";
import { cli, freePort, mintKey, signalbox, startServe } from "../kit/cli.ts";
import { onCleanup, post, signal, until } from "../kit/setup.ts";

/** How many readers wait for signals. */
async function waiting(dataDir: string): Promise<number | undefined> {
  return (await scrape(dataDir)).samples.get("signalbox_feed_requests_waiting");
}

const address = { host: "127.0.0.1", port: 0 };
const silent = pino({ level: "silent" });

test.each([128, 256, 1_024, 65_536])("of %i descriptors, most are for ingestion", (descriptors) => {
  const others = { consoleListen: address, readListen: address, opsListen: address, acme: {} };
  const all = { connectionsMax: 0, ...others };
  const plan = planConnections(all, silent, descriptors);
  const sum = plan.public + plan.console + plan.read + plan.ops + plan.acme;
  expect(sum).toBeLessThanOrEqual(descriptors - 64);
  expect(plan.public).toBeGreaterThanOrEqual(sum / 2);
  expect(Math.min(plan.console, plan.read, plan.ops, plan.acme)).toBeGreaterThan(1);
  const alone = planConnections(
    { ...all, consoleListen: null, readListen: null, opsListen: null, acme: null },
    silent,
    descriptors,
  );
  expect(alone.public).toBe(sum);
  expect(planConnections({ ...all, connectionsMax: 10 }, silent, descriptors).public).toBe(10);
});

/** Connections that have sent the beginning of a request and no more; reopened when they are cut. */
function holdOpen(port: number, count: number): void {
  let isOver = false;
  const sockets = new Set<Socket>();
  const open = (): void => {
    if (isOver) return;
    const socket = connect(port, "127.0.0.1", () => socket.write("GET / HTTP/1.1\r\n"));
    sockets.add(socket);
    socket.on("error", () => {});
    socket.on("close", () => {
      sockets.delete(socket);
      setTimeout(open, 100);
    });
  };
  for (let index = 0; index < count; index += 1) open();
  onCleanup(() => {
    isOver = true;
    for (const socket of sockets) socket.destroy();
  });
}

test("idle connections to the console and to health do not keep signals out", async () => {
  const limited = ["sh", "-c", 'ulimit -n 256; exec "$@"', "sh", ...signalbox];
  const [consolePort, opsPort] = [await freePort(), await freePort()];
  const listen = ["--console-listen", `127.0.0.1:${consolePort}`];
  listen.push("--ops-listen", `127.0.0.1:${opsPort}`);
  const server = await startServe(listen, { program: limited });
  const { key } = await mintKey(server.dataDir);
  holdOpen(consolePort, 300);
  holdOpen(opsPort, 300);
  await server.logged('"listener":"console"');
  await server.logged('"listener":"ops"');
  for (let count = 0; count < 30; count += 1) {
    const init = { keepalive: false, signal: AbortSignal.timeout(10_000) };
    expect((await post(server.url, key, {}, init)).status).toBe(201);
  }
  expect((await fetch(`http://127.0.0.1:${consolePort}/sign-in`)).status).toBe(200);
});

test("more connections than its share stay open while the process has enough", async () => {
  const opsPort = await freePort();
  await startServe(["--ops-listen", `127.0.0.1:${opsPort}`]);
  let closed = 0;
  const sockets = Array.from({ length: 100 }, () =>
    connect(opsPort, "127.0.0.1").on("close", () => (closed += 1)),
  );
  onCleanup(() => sockets.forEach((socket) => socket.destroy()));
  // Several checks.
  await Bun.sleep(1_500);
  expect(sockets.filter(({ pending }) => !pending)).toHaveLength(100);
  expect(closed).toBe(0);
});

/** A connection that sends this once. `answers`: how many answers it has got. */
function hold(port: number, request: string, host = "127.0.0.1") {
  const state = { answers: 0, isOpen: true };
  const socket = connect(port, host, () => socket.write(request));
  socket.on("data", (chunk: Buffer) => {
    state.answers += chunk.toString("latin1").split("HTTP/1.1 20").length - 1;
  });
  socket.on("error", () => {});
  socket.on("close", () => (state.isOpen = false));
  onCleanup(() => socket.destroy());
  return state;
}

const isOpen = ({ isOpen: open }: { readonly isOpen: boolean }) => open;

test("empty connections cut no reader that waits with a valid key", async () => {
  const limited = ["sh", "-c", 'ulimit -n 256; exec "$@"', "sh", ...signalbox];
  const readPort = await freePort();
  const args = ["--read-listen", `127.0.0.1:${readPort}`];
  const server = await startServe(args, { program: limited });
  const { key } = await mintKey(server.dataDir);
  const minted = await cli(["key", "mint", "--read", "--data", server.dataDir]);
  const ask = (wait: number) =>
    `GET /feed?wait=${wait} HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${minted.stdout.trim()}\r\n\r\n`;
  const readers = Array.from({ length: 5 }, () => hold(readPort, ask(60)));
  await until(async () => (await waiting(server.dataDir)) === readers.length);
  holdOpen(readPort, 300);
  await server.logged('"listener":"read"');
  expect(readers.filter(isOpen)).toHaveLength(readers.length);
  expect((await post(server.url, key, {})).status).toBe(201);
  await until(() => readers.every(({ answers }) => answers === 1));
});

test.each(["127.0.0.1", "[::1]"])(
  "the connections with a valid key that are idle longest are closed after all others: %s",
  async (host) => {
    const limit = 10;
    const args = ["--max-connections", String(limit)];
    const server = await startServe(args, { listen: `${host}:0` });
    const { key } = await mintKey(server.dataDir);
    const port = Number(new URL(server.url).port);
    const body = JSON.stringify(signal);
    const request = `POST /v1/signals HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${key}\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`;
    const bare = host.replaceAll(/[[\]]/g, "");
    const bots = Array.from({ length: limit / 2 }, () => hold(port, request, bare));
    await until(() => bots.every(({ answers }) => answers === 1));
    const strangers = Array.from({ length: 20 }, () =>
      hold(port, request.replace(key, "sbk_x"), bare),
    );
    await until(() => strangers.filter(isOpen).length === limit - bots.length);
    expect(bots.filter(isOpen)).toHaveLength(bots.length);
    // A valid key does not lift the limit.
    const more = Array.from({ length: limit }, () => hold(port, request, bare));
    await until(() => [...bots, ...more, ...strangers].filter(isOpen).length === limit);
    expect(strangers.filter(isOpen)).toEqual([]);
    expect(bots.filter(isOpen)).toEqual([]);
  },
);

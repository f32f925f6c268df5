/** The listeners share the process's descriptors, and the public interface has a share of its own. */
import { expect, test } from "bun:test";
import { connect, type Socket } from "node:net";
import { pino } from "pino";
import { planConnections } from "../src/net/connections.ts";
import { freePort, mintKey, signalbox, startServe } from "./_cli.ts";
import { onCleanup, post } from "./_setup.ts";

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

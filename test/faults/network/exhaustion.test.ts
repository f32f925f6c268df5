/** Clients that waste connections, beside honest clients whose signals must all be stored. */
import { expect, test } from "bun:test";
import { readdirSync } from "node:fs";
import { connect } from "node:net";
import { join } from "node:path";
import { SECOND_MS } from "../../../src/lib/text/time.ts";
import { makeCertificate, writeCertificate } from "../../kit/certificates.ts";
import { signalbox } from "../../kit/cli.ts";
import { startLoad } from "../../kit/load.ts";
import { onCleanup, sharedByFile, startTestApp, temporaryFolder, until } from "../../kit/setup.ts";
import { expectKept, isFull, memoryMib, report, scale, stop } from "../kit/faults.ts";
import { startGuests } from "../kit/guests.ts";
import { startService } from "../kit/service.ts";

/** The log counts cut connections once per this interval. */
const LINE_INTERVAL_MS = 6 * SECOND_MS;
/** Descriptors that are not connections of clients. */
const OTHER_DESCRIPTORS_MAX = 64;
/** Mostly garbage that is not collected yet. */
const GROWTH_MIB_MAX = 64;

async function startTarget(args: readonly string[], program = signalbox) {
  const files = writeCertificate(temporaryFolder(), await makeCertificate("exhaustion"));
  const tls = ["--tls-cert", files.certFile, "--tls-key", files.keyFile];
  const { server, key } = await startService({ args: [...tls, ...args], program, scheme: "https" });
  return { ...server, key };
}

type Target = Awaited<ReturnType<typeof startTarget>>;

/** Two clients that retry, on a kept connection and on one per signal. `end` checks that all is stored. */
function startHonest({ url, key, dataDir }: Target): () => Promise<string> {
  const loads = (["keep", "fresh"] as const).map((reuse) => {
    const pace = { pauseMs: 20, pauseAfter503Ms: 20 };
    return startLoad({ url, key, prefix: reuse, reuse, connections: 1, retry: true, ...pace });
  });
  return async () => {
    for (const load of loads) await load.more(1, 201);
    const results = (await Promise.all(loads.map((load) => load.end()))).flat();
    const statuses = results.map(({ outcome }) => outcome).filter(Number.isInteger);
    for (const status of statuses) expect([200, 201, 503]).toContain(status as number);
    const stored = expectKept(dataDir, results);
    return `${stored} honest signals stored, ${results.length - stored} requests sent again`;
  };
}

function countDescriptors({ pid }: Target): number {
  return readdirSync(`/proc/${pid}/fd`).length;
}

/** Counts descriptors and failed health checks until it is ended. */
function watch(server: Target) {
  const descriptors: number[] = [];
  let unwell = 0;
  const ending = new AbortController();
  const watching = (async () => {
    while (!ending.signal.aborted) {
      descriptors.push(countDescriptors(server));
      const health = await fetch("http://localhost/readyz", {
        unix: join(server.dataDir, "ops.sock"),
        keepalive: false,
        signal: AbortSignal.timeout(20 * SECOND_MS),
      }).catch(() => null);
      if (health?.ok !== true) unwell += 1;
      await Bun.sleep(250);
    }
  })();
  return async () => {
    ending.abort();
    await watching;
    return { descriptors, unwell };
  };
}

function expectNoErrors(server: Target): void {
  expect(server.log().filter(({ level }) => level === "error" || level === "fatal")).toEqual([]);
}

/** Connections that were cut because of the limit, by the lines of the log. */
function cutSince(server: Target, since = 0): number {
  const lines = server.log().filter(({ time }) => Date.parse(String(time)) >= since);
  return lines.reduce((sum, { cut }) => sum + (typeof cut === "number" ? cut : 0), 0);
}

test("more clients than descriptors: those idle longest are closed, and honest clients are served", async () => {
  const clients = scale(1_000, 300);
  const limited = ["sh", "-c", 'ulimit -n 128; exec "$@"', "sh", ...signalbox];
  const server = await startTarget([], limited);
  const endHonest = startHonest(server);
  const { url, key } = server;
  const guests = startGuests({ url, key, kind: "idle", guests: clients, pauseMs: 1_000 });
  await server.logged("too many connections");
  const endWatch = watch(server);
  await Bun.sleep(scale(20, 2) * SECOND_MS);
  const { opened } = await guests.end();
  const { descriptors, unwell } = await endWatch();
  const honest = await endHonest();
  expect(unwell).toBe(0);
  expect(Math.min(...descriptors)).toBeLessThan(128);
  expectNoErrors(server);
  await until(() => countDescriptors(server) < OTHER_DESCRIPTORS_MAX);
  report("more clients than descriptors", opened, `${cutSince(server)} cut; ${honest}`);
});

test("as many idle connections as are allowed stay open", async () => {
  const clients = scale(10_000, 300);
  const server = await startTarget(["--max-connections", String(clients * 1.2)]);
  const { url, key } = server;
  const before = memoryMib(server.pid);
  // More guests than connections: some are always between two connections.
  const guests = [1, 2].map(() =>
    startGuests({ url, key, kind: "held", guests: clients * 0.55, pauseMs: 100 }),
  );
  await until(() => countDescriptors(server) >= clients);
  const endHonest = startHonest(server);
  await Bun.sleep(scale(20, 1) * SECOND_MS);
  const [open, after] = [countDescriptors(server), memoryMib(server.pid)];
  const honest = await endHonest();
  const ended = await Promise.all(guests.map((crowd) => crowd.end()));
  expectNoErrors(server);
  expect(cutSince(server)).toBe(0);
  expect(after - before).toBeLessThan(GROWTH_MIB_MAX + (clients * 10) / 1_024);
  await until(() => countDescriptors(server) < OTHER_DESCRIPTORS_MAX);
  const opened = ended.reduce((sum, crowd) => sum + crowd.opened, 0);
  const memory = `${before} MiB before, ${after} MiB with ${open} descriptors`;
  report("idle connections", opened, `${memory}; ${honest}`);
});

/** slowhttptest asks the server itself whether it is available, and must never hear "no". */
async function slowHttpTest(server: Target, mode: "-H" | "-B" | "-X"): Promise<string> {
  const path = mode === "-X" ? "/openapi.yaml" : "/v1/signals";
  // The program has no other way to send a key.
  const contentType = `application/json\r\nAuthorization: Bearer ${server.key}`;
  const numbers = `-c ${scale(1_000, 15)} -r ${scale(200, 15)} -i 1 -k 3 -l ${scale(40, 3)} -p 5 -w 1 -y 512 -z 5 -n 2`;
  const options = ["-u", server.url + path, "-f", contentType, "-v", "1", ...numbers.split(" ")];
  const child = Bun.spawn(["slowhttptest", mode, ...options], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  onCleanup(() => child.kill());
  const output = Bun.stripANSI(await new Response(child.stdout).text());
  const available = [...output.matchAll(/service available:\s+(\w+)/g)].map(([, answer]) => answer);
  expect(new Set(available)).toEqual(new Set(["YES"]));
  return `${mode} ${/Exit status:\s*(.*)/.exec(output)?.[1]}`;
}

test("idle, slow and rude clients: honest clients are served, and memory stays flat", async () => {
  const limit = scale(4_096, 100);
  const server = await startTarget(isFull ? [] : ["--max-connections", String(limit)]);
  const { url, key } = server;
  const started = performance.now();
  const minute = (number: number, smallS: number): Promise<void> =>
    Bun.sleep(started + scale(number * 60, smallS) * SECOND_MS - performance.now());
  const memory: number[] = [];
  const endHonest = startHonest(server);
  const rude = startGuests({ url, key, kind: "rude", guests: scale(60, 12), pauseMs: 200 });
  await minute(1, 1);
  memory.push(memoryMib(server.pid));

  const endWatch = watch(server);
  const clients = scale(10_000, 300);
  const idle = [1, 2].map(() =>
    startGuests({ url, key, kind: "idle", guests: clients / 2, pauseMs: scale(5_000, 500) }),
  );
  await minute(2, 3);
  // A busy machine needs longer to open more connections than are allowed.
  await until(() => cutSince(server) > 0);
  const idled = await Promise.all(idle.map((crowd) => crowd.end()));
  const idleUntil = Date.now();
  const { descriptors, unwell } = await endWatch();
  expect(unwell).toBe(0);
  const crowded = descriptors.slice(-Math.ceil(descriptors.length / 2));
  expect(Math.min(...crowded)).toBeLessThan(limit + OTHER_DESCRIPTORS_MAX);
  memory.push(memoryMib(server.pid));

  const slow = startGuests({ url, key, kind: "slow", guests: scale(400, 12), pauseMs: 200 });
  const modes = ["-H", "-B", "-X"] as const;
  // Headers are cut after 8 to 12 s, bodies after 28 to 32 s.
  const long = Bun.sleep(scale(60, 20) * SECOND_MS);
  const slowTests = await Promise.all(modes.map((mode) => slowHttpTest(server, mode)));
  await long;
  await minute(5, 22);
  memory.push(memoryMib(server.pid));
  const slowed = await slow.end();
  const [heads = 0, lengths = 0, chunked = 0, handshakes = 0] = slowed.closed;
  expect(Math.min(heads, handshakes)).toBeGreaterThan(0);
  if (isFull) expect(Math.min(lengths, chunked)).toBeGreaterThan(0);
  await minute(10, 22);
  memory.push(memoryMib(server.pid));

  const rudely = await rude.end();
  const honest = await endHonest();
  expectNoErrors(server);
  expect(Math.min(...rudely.closed)).toBeGreaterThan(0);
  expect(memory.at(-1)).toBeLessThan((memory[0] ?? 0) + GROWTH_MIB_MAX);
  await until(() => countDescriptors(server) < OTHER_DESCRIPTORS_MAX);
  await stop(server);
  const cut = cutSince(server);
  expect(cut).toBeGreaterThan(0);
  expect(cutSince(server, idleUntil + LINE_INTERVAL_MS)).toBe(0);
  const opened = idled.reduce((sum, crowd) => sum + crowd.opened, 0);
  const most = `${cut} cut; at most ${Math.max(...descriptors)} descriptors`;
  report("idle clients at the limit", opened, most);
  const cuts = `cut: ${slowed.closed.join(", ")}; slowhttptest ${slowTests.join(", ")}`;
  report("slow clients", slowed.opened, cuts);
  report("rude clients", rudely.opened, `MiB over time: ${memory.join(", ")}; ${honest}`);
});

/** How long each of these clients goes on sending after its request was refused. They begin before the other tests. */
const talkers = sharedByFile(async () => {
  const { app, key } = await startTestApp();
  const auth = `Authorization: Bearer ${key}\r\nContent-Type: application/json\r\n`;
  const framings = ["Content-Length: 1000000000\r\n", "Transfer-Encoding: chunked\r\n"];
  const heads = framings.flatMap((framing) => [framing, auth + framing]);
  return { timesMs: Promise.all(heads.map((head) => timeUntilCut(app.address.port, head))) };
});

test("a client that keeps sending after a refusal is disconnected", async () => {
  const timesMs = await talkers().timesMs;
  expect(Math.max(...timesMs)).toBeLessThan(40_000);
  const found = `cut after ${Math.round(Math.max(...timesMs) / 1_000)} s`;
  report("bodies that go on after a 401 or 413", timesMs.length, found);
});

function timeUntilCut(port: number, head: string): Promise<number> {
  const chunk = "x".repeat(16_384);
  const { promise, resolve } = Promise.withResolvers<number>();
  const startedAt = performance.now();
  const socket = connect(port, "127.0.0.1");
  const piece = `${chunk.length.toString(16)}\r\n${chunk}\r\n`;
  socket.write(`POST /v1/signals HTTP/1.1\r\nHost: signals.example\r\n${head}\r\n`);
  const sending = setInterval(() => socket.write(piece), 50);
  socket.on("error", () => {});
  socket.on("close", () => {
    clearInterval(sending);
    resolve(performance.now() - startedAt);
  });
  socket.resume();
  return promise;
}

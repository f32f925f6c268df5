/**
 * Clients that hold what they do not use: descriptors, connections, half requests, unread answers.
 * Beside each crowd honest clients send signals, and all of these are answered and stored once.
 */
import { expect, setDefaultTimeout, test } from "bun:test";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { makeCertificate, writeCertificate } from "../_certificates.ts";
import { signalbox, mintKey, type ServeProcess, startServe } from "../_cli.ts";
import { onCleanup, temporaryFolder } from "../_setup.ts";
import { describeLatency, startGuests, startHonest } from "./_crowd.ts";
import { expectKept, isFull, report, scale } from "./_faults.ts";
import type { HonestResult } from "./_honest.ts";

setDefaultTimeout(scale(15 * 60_000, 60_000));

const SECOND_MS = 1_000;
/** What is cut is in the log after so long. */
const LINE_INTERVAL_MS = 6 * SECOND_MS;
/** What the process has open beside connections: files, event loops, its other listeners. */
const OTHER_DESCRIPTORS_MAX = 64;
/** Beyond this memory is not flat. Garbage that is not collected yet makes most of the difference. */
const GROWTH_MIB_MAX = 64;

interface Target extends ServeProcess {
  readonly key: string;
}

async function startTarget(args: readonly string[], program?: readonly string[]): Promise<Target> {
  const { certFile, keyFile } = writeCertificate(
    temporaryFolder(),
    await makeCertificate("exhaustion"),
  );
  const server = await startServe(
    ["--tls-cert", certFile, "--tls-key", keyFile, ...args],
    program === undefined ? {} : { program },
  );
  const { key } = await mintKey(server.dataDir);
  return { ...server, key };
}

/** Two honest clients; `end` holds what they saw to the promise. */
function startHonestPair({ url, key, dataDir }: Target) {
  const pair = (["keep", "fresh"] as const).map((reuse) =>
    startHonest({ url, key, prefix: reuse, reuse }),
  );
  return async (): Promise<HonestResult[]> => {
    const [kept = [], fresh = []] = await Promise.all(pair.map((client) => client.end()));
    for (const results of [kept, fresh]) {
      expect(results.length).toBeGreaterThan(0);
      expect(results.filter(({ outcome }) => outcome !== 201 && outcome !== 200)).toEqual([]);
    }
    expect(expectKept(dataDir, [...kept, ...fresh])).toBe(kept.length + fresh.length);
    return [...kept, ...fresh];
  };
}

function countDescriptors(pid: number): number {
  return readdirSync(`/proc/${pid}/fd`).length;
}

function memoryMib(pid: number): number {
  const [, kib] = /^VmRSS:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, "utf8")) ?? [];
  return Math.round(Number(kib) / 1024);
}

/** Looks at the server every quarter of a second: descriptors, and whether its health socket answers. */
function watch({ pid, dataDir }: Target) {
  const descriptors: number[] = [];
  let unwell = 0;
  const end = new AbortController();
  const looking = (async () => {
    while (!end.signal.aborted) {
      descriptors.push(countDescriptors(pid));
      const health = fetch("http://localhost/readyz", {
        unix: join(dataDir, "ops.sock"),
        keepalive: false,
        signal: AbortSignal.timeout(5 * SECOND_MS),
      });
      if (
        !(await health.then(
          ({ ok }) => ok,
          () => false,
        ))
      )
        unwell += 1;
      await Bun.sleep(250);
    }
  })();
  return async () => {
    end.abort();
    await looking;
    return { descriptors, unwell };
  };
}

async function until(isSo: () => boolean, timeoutMs = 60 * SECOND_MS): Promise<void> {
  const deadline = performance.now() + timeoutMs;
  while (!isSo()) {
    if (performance.now() > deadline) throw new Error("it did not come about in time");
    await Bun.sleep(50);
  }
}

function expectNoErrors(server: Target): void {
  expect(server.log().filter(({ level }) => level === "error" || level === "fatal")).toEqual([]);
}

/** How many connections were cut for the limit's sake, by the lines of the log from then on. */
function cutSince(server: Target, since = 0): number {
  const lines = server.log().filter(({ time }) => Date.parse(String(time)) >= since);
  return lines.reduce((sum, { cut }) => sum + (typeof cut === "number" ? cut : 0), 0);
}

test("more clients than descriptors: the rest is cut, and the server goes on", async () => {
  const clients = scale(1_000, 300);
  const limited = ["sh", "-c", 'ulimit -n 128; exec "$@"', "sh", ...signalbox];
  const server = await startTarget([], limited);
  const endHonest = startHonestPair(server);
  const { url, key } = server;
  const guests = startGuests({ url, key, kind: "idle", guests: clients, pauseMs: 1_000 });
  await server.logged("too many connections");
  const endWatch = watch(server);
  await Bun.sleep(scale(20, 2) * SECOND_MS);
  const { opened } = await guests.end();
  const { descriptors, unwell } = await endWatch();
  const results = await endHonest();
  expect(unwell).toBe(0);
  expect(Math.min(...descriptors)).toBeLessThan(128);
  expectNoErrors(server);
  await until(() => countDescriptors(server.pid) < OTHER_DESCRIPTORS_MAX);
  report("descriptors", {
    injected: `${clients} idle clients on a server with ulimit -n 128`,
    times: opened,
    checked: `${cutSince(server)} cut; health unanswered ${unwell} of ${descriptors.length} times; honest: ${describeLatency(results)}`,
  });
});

test("idle connections are held, as many as are allowed", async () => {
  const clients = scale(10_000, 300);
  const server = await startTarget(["--max-connections", String(clients * 1.2)]);
  const { url, key, pid } = server;
  const before = memoryMib(pid);
  // Some are always between two connections.
  const guests = [1, 2].map(() =>
    startGuests({ url, key, kind: "held", guests: clients * 0.55, pauseMs: 100 }),
  );
  await until(() => countDescriptors(pid) >= clients, 180 * SECOND_MS);
  const endHonest = startHonestPair(server);
  await Bun.sleep(scale(20, 1) * SECOND_MS);
  const open = countDescriptors(pid);
  const after = memoryMib(pid);
  const results = await endHonest();
  const ended = await Promise.all(guests.map((crowd) => crowd.end()));
  expectNoErrors(server);
  expect(cutSince(server)).toBe(0);
  expect(after - before).toBeLessThan(GROWTH_MIB_MAX + (clients * 10) / 1_024);
  await until(() => countDescriptors(pid) < OTHER_DESCRIPTORS_MAX);
  report("idle connections", {
    injected: `${clients} idle TLS connections at once, ${open} descriptors, all allowed`,
    times: ended.reduce((sum, { opened }) => sum + opened, 0),
    checked: `${before} MiB before, ${after} MiB with them; honest: ${describeLatency(results)}`,
  });
});

/** Ends when its time is over or it has no connection left. Its own probe says whether it was served. */
async function slowHttpTest(server: Target, mode: "-H" | "-B" | "-X"): Promise<string> {
  const path = mode === "-X" ? "/openapi.yaml" : "/v1/signals";
  // The program has no other way to send a key.
  const contentType = `application/json\r\nAuthorization: Bearer ${server.key}`;
  const child = Bun.spawn(
    ["slowhttptest", mode, "-u", server.url + path, "-f", contentType, "-v", "1"].concat(
      ["-c", String(scale(1_000, 15)), "-r", String(scale(200, 15)), "-i", "1", "-k", "3"],
      ["-l", String(scale(40, 3)), "-p", "5", "-w", "1", "-y", "512", "-z", "5", "-n", "2"],
    ),
    { stdin: "ignore", stdout: "pipe", stderr: "inherit" },
  );
  onCleanup(() => child.kill());
  // eslint-disable-next-line no-control-regex
  const output = (await new Response(child.stdout).text()).replaceAll(/\x1b\[[\d;]*m/g, "");
  const said = [...output.matchAll(/service available:\s+(\w+)/g)].map(([, answer]) => answer);
  expect(said.length).toBeGreaterThan(0);
  expect(said).not.toContain("NO");
  return `${mode} ${/Exit status:\s*(.*)/.exec(output)?.[1]}`;
}

test("idle, slow, pipelining, half-closing and aborting clients: memory is flat", async () => {
  const limit = scale(4_096, 100);
  const server = await startTarget(isFull ? [] : ["--max-connections", String(limit)]);
  const { url, key, pid } = server;
  const started = performance.now();
  const minute = (number: number, quickS: number): Promise<void> =>
    Bun.sleep(started + scale(number * 60, quickS) * SECOND_MS - performance.now());
  const memory: Record<string, number> = {};
  const endHonest = startHonestPair(server);
  const rude = startGuests({ url, key, kind: "rude", guests: scale(60, 12), pauseMs: 200 });
  await minute(1, 1);
  memory["minute 1"] = memoryMib(pid);

  const { idled, descriptors, unwell } = await crowdWithIdle(server, () => minute(2, 3));
  expect(unwell).toBe(0);
  const crowded = descriptors.slice(-Math.ceil(descriptors.length / 2));
  expect(Math.min(...crowded)).toBeLessThan(limit + OTHER_DESCRIPTORS_MAX);
  memory["after idle clients"] = memoryMib(pid);

  const slow = startGuests({ url, key, kind: "slow", guests: scale(400, 12), pauseMs: 200 });
  const modes = ["-H", "-B", "-X"] as const;
  const slowTests = await Promise.all(modes.map((mode) => slowHttpTest(server, mode)));
  await minute(5, 16);
  memory["minute 5"] = memoryMib(pid);
  const slowed = await slow.end();
  // Headers have 10 s, bodies 30 s; of those who were cut none was cut for the limit's sake.
  const [heads = 0, lengths = 0, chunked = 0, handshakes = 0] = slowed.closed;
  expect(Math.min(heads, handshakes)).toBeGreaterThan(0);
  if (isFull) expect(Math.min(lengths, chunked)).toBeGreaterThan(0);
  await minute(10, 16);
  memory["minute 10"] = memoryMib(pid);

  const { opened, closed } = await rude.end();
  const results = await endHonest();
  expectNoErrors(server);
  expect(Math.min(...closed)).toBeGreaterThan(0);
  expect(memory["minute 10"]).toBeLessThan((memory["minute 1"] ?? 0) + GROWTH_MIB_MAX);
  await until(() => countDescriptors(pid) < OTHER_DESCRIPTORS_MAX);
  server.kill("SIGTERM");
  expect(await server.exited).toBe(0);
  const cut = cutSince(server);
  expect(cut).toBeGreaterThan(0);
  expect(cutSince(server, idled.to + LINE_INTERVAL_MS)).toBe(0);
  const honestIn = (from: number, to: number): string =>
    describeLatency(results.filter(({ at }) => at >= from && at < to));
  report("idle clients", {
    injected: `${idled.count} idle clients at once, over TLS, limit ${limit}`,
    times: idled.opened,
    checked: `${cut} cut; descriptors at most ${Math.max(...descriptors)}, median ${median(descriptors)}; honest: ${honestIn(idled.from, idled.to)}`,
  });
  report("slow clients", {
    injected: `headers, bodies and handshakes a byte a second; slowhttptest ${slowTests.join(", ")}`,
    times: slowed.opened,
    checked: `closed: headers ${heads}, bodies ${lengths}, chunked bodies ${chunked}, handshakes ${handshakes}`,
  });
  report("rude clients", {
    injected: "pipelining without reading, half-closed and aborted, before and after the last byte",
    times: opened,
    checked: `MiB ${JSON.stringify(memory)}; honest all the while: ${describeLatency(results)}`,
  });
});

/** As many again as are cut. */
async function crowdWithIdle(server: Target, over: () => Promise<void>) {
  const { url, key } = server;
  const count = scale(10_000, 300);
  const pauseMs = scale(5_000, 500);
  const endWatch = watch(server);
  const from = Date.now();
  const idle = [1, 2].map(() =>
    startGuests({ url, key, kind: "idle", guests: count / 2, pauseMs }),
  );
  await over();
  const ended = await Promise.all(idle.map((crowd) => crowd.end()));
  const watched = await endWatch();
  const opened = ended.reduce((sum, result) => sum + result.opened, 0);
  return { idled: { count, opened, from, to: Date.now() }, ...watched };
}

function median(numbers: readonly number[]): number {
  return numbers.toSorted((a, b) => a - b)[Math.floor(numbers.length / 2)] ?? Number.NaN;
}

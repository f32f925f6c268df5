/** The readers of `clients/` in Python and Node, while the server is killed. */
import { expect, test } from "bun:test";
import { type AddressInfo, connect, createServer } from "node:net";
import { join } from "node:path";
import { cli, freePort, mintKey, startServe } from "../../kit/cli.ts";
import { answersFromNow, startFakeFeed, startProxy, startWithFeed } from "../../feed/_feed.ts";
import { onCleanup, post, query, sharedByFile } from "../../kit/setup.ts";
import { programWith, startBot } from "./_bots.ts";
import "../kit/faults.ts";

const SIGNALS = 60;

const python = `import os
from feed import Feed, FeedError
try:
    for signal in Feed(os.environ["URL"], os.environ["KEY"], after=os.environ.get("AFTER"), limit=7):
        print(signal["id"], signal["metadata"]["n"], flush=True)
except FeedError as error:
    print(*([error] if error.status is None else [error.status, error.code, sorted(error.fields)]))
`;

const node = `import { Feed, FeedError } from "./feed.ts";
const { URL: url, KEY: key, AFTER: after = null } = process.env;
try {
  for await (const { id, metadata } of new Feed({ url, key, after, limit: 7 }).signals())
    console.log(id, metadata.n);
} catch (error) {
  if (!(error instanceof FeedError)) throw error;
  if (error.status === null) console.log(error.message);
  else console.log(error.status, error.code, JSON.stringify(Object.keys(error.fields)).replaceAll('"', "'"));
}
`;

/** They begin before the other tests. */
const longWaits = sharedByFile(async () => {
  const readPort = await freePort();
  const { dataDir } = await startServe(["--read-listen", `127.0.0.1:${readPort}`]);
  await mintKey(dataDir);
  const minted = await cli(["key", "mint", "--read", "--desk", "alpha", "--data", dataDir]);
  const headers = { Authorization: `Bearer ${minted.stdout.trim()}` };
  const answers = Promise.all([
    fetch(`http://127.0.0.1:${readPort}/feed?wait=45`, { headers }),
    fetch("http://localhost/feed?wait=45", { unix: join(dataDir, "ops.sock") }),
  ]);
  return { answers };
});

function startReader(name: "python" | "node", env: Record<string, string>) {
  return startBot(name, programWith(name, "feed", { python, node }[name]), env);
}

test.each(["python", "node"] as const)(
  "%s: a reader gets each signal once and in order, and the reason of a refusal",
  async (name) => {
    const { dataDir, readUrl, start, first } = await startWithFeed();
    let server = first;
    const { key } = await mintKey(dataDir);
    const minted = await cli(["key", "mint", "--read", "--data", dataDir]);
    const env = { URL: readUrl, KEY: minted.stdout.trim() };
    const reader = startReader(name, env);
    for (let n = 0; n < SIGNALS; n += 1) {
      expect((await post(server.url, key, { metadata: { n } })).status).toBe(201);
      if (n !== SIGNALS / 2) continue;
      server.kill("SIGKILL");
      await server.exited;
      server = await start();
    }
    const ids = query<{ id: string }>(dataDir, "SELECT id FROM signals ORDER BY seq");
    expect(await reader.linesUntil(SIGNALS)).toEqual(ids.map(({ id }, n) => `${id} ${n}`));
    const refused = startReader(name, { ...env, AFTER: "7ZZZZZZZZZZZZZZZZZZZZZZZZZ" });
    expect(await refused.linesUntil(1)).toEqual(["422 validation_failed ['after']"]);
  },
);

/** Passes on what a server answers, piece by piece with pauses while it is slow. */
function startSlowProxy(target: string) {
  const state = { isSlow: true };
  const passed = Promise.withResolvers<void>();
  const { hostname, port } = new URL(target);
  const server = createServer((client) => {
    const upstream = connect(Number(port), hostname);
    client.on("error", () => {}).on("close", () => upstream.destroy());
    upstream.on("error", () => {}).on("close", () => client.destroy());
    client.pipe(upstream);
    upstream.on("data", (chunk: Buffer) => {
      client.write(chunk);
      passed.resolve();
      if (!state.isSlow) return;
      upstream.pause();
      setTimeout(() => upstream.resume(), 500);
    });
  });
  server.listen(0, "127.0.0.1");
  onCleanup(() => server.close());
  const { port: own } = server.address() as AddressInfo;
  return { url: `http://127.0.0.1:${own}`, passed: passed.promise, state };
}

test.each(["python", "node"] as const)(
  "%s: a stop cuts the answer of a slow reader, who gets the rest after the restart",
  async (name) => {
    const { dataDir, readUrl, start, first } = await startWithFeed();
    const { key } = await mintKey(dataDir);
    const minted = await cli(["key", "mint", "--read", "--data", dataDir]);
    const note = "x".repeat(60_000);
    for (let n = 0; n < 8; n += 1) {
      expect((await post(first.url, key, { metadata: { n, note } })).status).toBe(201);
    }
    const proxy = startSlowProxy(readUrl);
    const reader = startReader(name, { URL: proxy.url, KEY: minted.stdout.trim() });
    const lines = reader.linesUntil(8);
    await proxy.passed;
    first.kill("SIGTERM");
    expect(await first.exited).toBe(0);
    expect(first.output.stderr).not.toContain("cut the connections");
    proxy.state.isSlow = false;
    await start();
    const ids = query<{ id: string }>(dataDir, "SELECT id FROM signals ORDER BY seq");
    expect(await lines).toEqual(ids.map(({ id }, n) => `${id} ${n}`));
  },
);

// test/feed/feed-client.test.ts has the reader in TypeScript.
test("python: a reader that begins now asks for its place first, and keeps it when an answer is cut", async () => {
  const { id, answers, asks } = answersFromNow();
  const { url, asked } = startFakeFeed(answers);
  const reader = startReader("python", { URL: url, KEY: `sbr_${"0".repeat(64)}`, AFTER: "now" });
  expect(await reader.linesUntil(2)).toEqual([`${id} 0`, "404 not_found []"]);
  expect(asked).toEqual(asks);
});

const id = "01K5QZ8F3V9X2M7T4B6N1C0D8E";
const end = `{"next":"${id}","done":true}\n`;

test("python: an integer with more digits than Python converts does not stop the reader", async () => {
  const digits = "1".repeat(5_000);
  const lines = ["7", digits].map((n) => `{"id":"${id}","metadata":{"n":${n}}}\n`).join("");
  const { url } = startFakeFeed([() => new Response(lines + end)]);
  const reader = startReader("python", { URL: url, KEY: `sbr_${"0".repeat(64)}` });
  expect(await reader.linesUntil(3)).toEqual([`${id} 7`, `${id} ${digits}`, "404 not_found []"]);
});

test("python: no proxy gets a key that is sent over http", async () => {
  const { url } = startFakeFeed([() => new Response(end)]);
  const { env, asked } = startProxy();
  const reader = startReader("python", { URL: url, KEY: `sbr_${"0".repeat(64)}`, ...env });
  expect(await reader.linesUntil(1)).toEqual(["404 not_found []"]);
  expect(asked).toEqual([]);
});

test("a reader may wait for longer than a connection may be idle", async () => {
  for (const answer of await longWaits().answers) {
    expect(await answer.text()).toBe('{"next":null,"done":true}\n');
  }
});

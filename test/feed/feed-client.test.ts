/** Readers with `clients/typescript/feed.ts`, while signals are stored and the server is killed. */
import { expect, test } from "bun:test";
import { getEventListeners } from "node:events";
import { join } from "node:path";
import { Feed, FeedError, type FeedOptions } from "../../clients/typescript/feed.ts";
import { Signalbox } from "../../clients/typescript/signalbox.ts";
import { cli, mintKey } from "../kit/cli.ts";
import { type Engine, engineTest, type Place } from "../store/postgres/_engines.ts";
import {
  answersFromNow,
  hopelessUrls,
  startFakeFeed,
  startFeedApp,
  startProxy,
  startWithFeed,
} from "./_feed.ts";
import { onCleanup, rejection, signal, temporaryFolder, until } from "../kit/setup.ts";

const quiet = { onRetry: () => {} };
const SIGNALS_PER_WRITER = 150;
const WRITERS_PER_DESK = 4;
/** A reader starts again from its cursor after so many signals. */
const RESTART_EVERY = 37;

/** Reads until it has what `isComplete` wants; starts again from its last cursor from time to time. */
async function readAll(
  options: FeedOptions,
  isComplete: (ids: string[]) => boolean,
): Promise<string[]> {
  const ids: string[] = [];
  while (!isComplete(ids)) {
    const feed = new Feed({ ...options, after: ids.at(-1) ?? null });
    let count = 0;
    for await (const { id } of feed.signals()) {
      ids.push(id);
      count += 1;
      if (count === RESTART_EVERY || isComplete(ids)) break;
    }
  }
  return ids;
}

/** Bots send to the first two servers, readers ask the last one. One server does all of that. */
async function startServers({ hasServers }: Engine, { dataDir, env }: Place) {
  const folders = hasServers ? [1, 2, 3].map(() => temporaryFolder()) : [dataDir];
  const servers = await Promise.all(folders.map((folder) => startWithFeed(folder, env)));
  const senders = servers.slice(0, 2);
  const [killed, stopped] = [servers.at(0), servers.at(-1)];
  if (killed === undefined || stopped === undefined) throw new Error("there is no server");
  const running = new Map(servers.map((one) => [one, one.first]));
  const end = async (one: typeof killed, how: "SIGKILL" | "SIGTERM"): Promise<void> => {
    const server = running.get(one);
    server?.kill(how);
    await server?.exited;
    running.set(one, await one.start());
  };
  return {
    urls: senders.map(({ first }) => first.url),
    readUrl: stopped.readUrl,
    kill: () => end(killed, "SIGKILL"),
    stop: () => end(stopped, "SIGTERM"),
  };
}

const title =
  "readers get each signal once and in order, while writers compete and servers are killed and stopped";
engineTest(title, async (engine) => {
  const place = await engine.place();
  const { dataDir, env } = place;
  const { urls, readUrl, kill, stop } = await startServers(engine, place);
  const keys = [await mintKey(dataDir, "alpha", { env }), await mintKey(dataDir, "beta", { env })];
  const readKey = async (...args: string[]) =>
    (await cli(["key", "mint", "--read", ...args], { env })).stdout.trim();
  const perDesk = WRITERS_PER_DESK * SIGNALS_PER_WRITER;
  const read = (key: string, count: number, limit: number) =>
    readAll({ url: readUrl, key, after: null, limit, ...quiet }, (ids) => ids.length >= count);
  const [ofAlpha, ofAll] = [await readKey("--desk", "alpha"), await readKey()];
  const readers = [
    read(ofAlpha, perDesk, 10),
    read(ofAll, 2 * perDesk, 7),
    read(ofAll, 2 * perDesk, 500),
  ];
  let sent = 0;
  const writers = keys.flatMap(({ key }) =>
    Array.from({ length: WRITERS_PER_DESK }, async (_, writer) => {
      const signalbox = new Signalbox({
        url: urls[writer % urls.length] ?? "",
        key,
        attempts: 30,
        timeoutMs: 2_000,
        ...quiet,
      });
      for (let index = 0; index < SIGNALS_PER_WRITER; index += 1) {
        await signalbox.send(signal);
        sent += 1;
      }
    }),
  );
  await until(() => sent >= perDesk / 2);
  await kill();
  await until(() => sent >= perDesk);
  await stop();
  await Promise.all(writers);
  const stored = await place.rows<{ id: string; desk: number }>(
    "SELECT id, desk_id AS desk FROM signals ORDER BY seq",
  );
  const all = stored.map(({ id }) => id);
  const alpha = stored.filter(({ desk }) => desk === 1).map(({ id }) => id);
  expect(await Promise.all(readers)).toEqual([alpha, all, all]);
});

test("after a restore a reader is told, and continues after the newest signal of the backup", async () => {
  const { dataDir, readUrl, start, first } = await startWithFeed();
  const command = async (...args: string[]) =>
    (await cli([...args, "--data", dataDir])).stdout.trim();
  let server = first;
  const { key } = await mintKey(dataDir, "alpha");
  const { key: beta } = await mintKey(dataDir, "beta");
  const readKey = await command("key", "mint", "--read");
  const ofAlpha = await command("key", "mint", "--read", "--desk", "alpha");
  const send = async (sender = key) =>
    (await new Signalbox({ url: server.url, key: sender, ...quiet }).send(signal)).id;
  const read = (after: string, reader = readKey) =>
    new Feed({ url: readUrl, key: reader, after, ...quiet }).signals().next();
  const keptOfAlpha = await send();
  const kept = await send(beta);
  const backup = join(temporaryFolder(), "backup.db");
  await command("backup", backup);
  const lost = await send();
  expect((await read(kept)).value).toMatchObject({ id: lost });
  server.kill("SIGTERM");
  await server.exited;
  await command("restore", backup, "--force");
  const restoredAt = new Date().toISOString();
  server = await start();
  const later = await send();
  expect(await rejection(read(lost))).toMatchObject({
    status: 422,
    fields: { after: expect.any(String) },
  });
  // As in docs/feed.md.
  const newest = async (...args: string[]) => {
    const line = await command("signals", "tail", "--limit", "1", "--until", restoredAt, ...args);
    return (JSON.parse(line) as { id: string }).id;
  };
  const [ofAll, ofDesk] = [await newest(), await newest("--desk", "alpha")];
  expect([ofAll, ofDesk]).toEqual([kept, keptOfAlpha]);
  expect((await read(ofAll)).value).toMatchObject({ id: later });
  expect((await read(ofDesk, ofAlpha)).value).toMatchObject({ id: later });
});

test("signals arrive with their fields, until the reader is told to end", async () => {
  const { feedUrl, readKey, store } = await startFeedApp();
  const end = new AbortController();
  const feed = new Feed({ url: feedUrl, key: readKey, after: null, signal: end.signal, ...quiet });
  const first = await store({ metadata: { take_profit: 2 } });
  const seen: string[] = [];
  const reading = (async () => {
    for await (const { id, metadata } of feed.signals()) {
      seen.push(id);
      if (id === first) expect(metadata).toEqual({ take_profit: 2 });
    }
  })();
  await until(() => seen.length === 1);
  const second = await store();
  await until(() => seen.length === 2);
  end.abort();
  await reading;
  expect(seen).toEqual([first, second]);
});

test("what no retry can help is thrown, with the reason", async () => {
  const { feedUrl: url, readKey: key } = await startFeedApp();
  const failure = (options: Partial<FeedOptions>) =>
    rejection(new Feed({ url, key, after: null, ...quiet, ...options }).signals().next());
  const unknown = await failure({ key: `sbr_${"0".repeat(64)}` });
  expect(unknown).toBeInstanceOf(FeedError);
  expect(unknown).toMatchObject({ status: 401, code: "unauthorized", fields: {} });
  expect(await failure({ after: "7ZZZZZZZZZZZZZZZZZZZZZZZZZ" })).toMatchObject({
    status: 422,
    code: "validation_failed",
    fields: { after: expect.stringContaining("restored from a backup") },
  });
  expect(() => new Feed({ url: "http://192.0.2.1:8082", key, after: null })).toThrow("use https");
  expect(() => new Feed({ url, key: key.replace("sbr_", "sbk_"), after: null })).toThrow(
    "A read key is sbr_",
  );
});

test("an untrusted certificate and http instead of https end the reader", async () => {
  for (const [url, advice] of await hopelessUrls()) {
    const problems: string[] = [];
    const onRetry = (problem: string) => void problems.push(problem);
    const feed = new Feed({ url, key: `sbr_${"0".repeat(64)}`, after: null, onRetry });
    const error = await rejection(feed.signals().next());
    expect(error).toBeInstanceOf(FeedError);
    expect(error).toMatchObject({ status: null, message: expect.stringContaining(advice) });
    expect(problems).toEqual([]);
  }
});

test("no proxy gets a key that is sent over http", async () => {
  const { feedUrl, readKey, key, url, store } = await startFeedApp();
  const { env, asked } = startProxy();
  const before = Object.keys(env).map((name) => [name, process.env[name]] as const);
  onCleanup(() => {
    for (const [name, value] of before) {
      if (value === undefined) delete process.env[name];
      else process.env[name] = value;
    }
  });
  const first = await store();
  Object.assign(process.env, env);
  // Otherwise the test shows nothing.
  expect((await fetch(feedUrl)).status).toBe(407);
  asked.pop();
  const signals = new Feed({ url: feedUrl, key: readKey, after: null, ...quiet }).signals();
  expect((await signals.next()).value?.id).toBe(first);
  await new Signalbox({ url, key, ...quiet }).send(signal);
  expect(asked).toEqual([]);
});

test("an answer that was cut, a 503 and a 429 are asked for again", async () => {
  const id = "01K5QZ8F3V9X2M7T4B6N1C0D8E";
  const line = `${JSON.stringify({ id })}\n`;
  const answers = [
    () => new Response(line),
    () => new Response("{}", { status: 503 }),
    () => new Response("{}", { status: 429, headers: { "Retry-After": "0" } }),
    () => new Response(`${line}{"next":"${id}","done":true}\n`),
  ];
  const { url, asked } = startFakeFeed(answers);
  const problems: string[] = [];
  const onRetry = (problem: string) => void problems.push(problem);
  const feed = new Feed({
    url,
    key: `sbr_${"0".repeat(64)}`,
    after: null,
    onRetry,
  });
  const signals = feed.signals();
  expect((await signals.next()).value?.id).toBe(id);
  expect(await rejection(signals.next())).toMatchObject({ status: 404 });
  expect(asked).toEqual([...Array<string>(4).fill("none 30"), `${id} 30`]);
  expect(problems).toHaveLength(3);
});

test("a retry leaves no listener at the caller's signal", async () => {
  const { url } = startFakeFeed(Array(3).fill(() => new Response("{}", { status: 503 })));
  const { signal: end } = new AbortController();
  const listeners: number[] = [];
  const onRetry = () => void listeners.push(getEventListeners(end, "abort").length);
  const key = `sbr_${"0".repeat(64)}`;
  const signals = new Feed({ url, key, after: null, signal: end, onRetry }).signals();
  expect(await rejection(signals.next())).toMatchObject({ status: 404 });
  expect(listeners).toEqual([0, 0, 0]);
});

test("what both clients in TypeScript do is the same text", async () => {
  const [sends, reads] = await Promise.all(
    ["signalbox", "feed"].map(async (name) => {
      const text = await Bun.file(`clients/typescript/${name}.ts`).text();
      const start = text.indexOf("/** Why there was no answer.");
      return text.slice(start, text.indexOf("\n}\n", text.indexOf("function isPlain(")));
    }),
  );
  expect(sends).toContain("Bun's is the same for all");
  expect(reads).toBe(String(sends));
});

test("a reader that begins now asks for its place first, and keeps it when an answer is cut", async () => {
  const { id, answers, asks } = answersFromNow();
  const { url, asked } = startFakeFeed(answers);
  const signals = new Feed({ url, key: `sbr_${"0".repeat(64)}`, after: "now", ...quiet }).signals();
  expect((await signals.next()).value?.id).toBe(id);
  expect(await rejection(signals.next())).toMatchObject({ status: 404 });
  expect(asked).toEqual(asks);
});

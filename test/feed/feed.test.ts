/** `GET /feed`: pages, cursors, long polling, and who may read what. */
import { describe, expect, test } from "bun:test";
import { ptr } from "bun:ffi";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { AppError } from "../../src/domain/errors.ts";
import type { FeedStore } from "../../src/domain/storage/feed.ts";
import type { StoredSignal } from "../../src/domain/signal/stored-signal.ts";
import { DAY_MS } from "../../src/lib/text/time.ts";
import { messages } from "../../src/feed/errors.ts";
import { Feed, REQUEST_MS } from "../../src/feed/feed.ts";
import { ConcurrencyLimit, KEY_REQUESTS_MAX } from "../../src/feed/concurrency.ts";
import { SEND_BUFFER_BYTES } from "../../src/feed/server.ts";
import { REST_FACTOR } from "../../src/feed/throttle.ts";
import { CommitNotifier } from "../../src/feed/commit-notifier.ts";
import { makeCertificate, presentedName, writeCertificate } from "../kit/certificates.ts";
import { scrape } from "../ops/_metrics.ts";
import { type FeedAnswer, readFeed, startFeedApp } from "./_feed.ts";
import { loadLibc } from "../../src/lib/libc.ts";
import { PortSockets } from "../../src/http/sockets.ts";
import { askStatus } from "../../src/ops/client.ts";
import { DATABASE_NAME } from "../../src/store/sqlite/files/folder.ts";
import { hashSignals } from "../kit/records.ts";
import {
  callUrl,
  mintKey,
  openForDamage,
  posting,
  query,
  rejection,
  signal,
  temporaryFolder,
  trusting,
  until,
} from "../kit/setup.ts";

const UNKNOWN_ID = "7ZZZZZZZZZZZZZZZZZZZZZZZZZ";

const answerOf = ({ status, error }: FeedAnswer) => [status, error];

/** Reads over the socket in the data folder. */
function readOwn(dataDir: string, parameters = {}, init: RequestInit = {}): Promise<FeedAnswer> {
  const overSocket = { ...init, unix: join(dataDir, "ops.sock") } as RequestInit;
  return readFeed("http://localhost/feed", null, parameters, overSocket);
}

/** Until so many requests wait for signals. */
async function waiting(dataDir: string, count = 1): Promise<void> {
  const metric = "signalbox_feed_requests_waiting";
  await until(async () => (await scrape(dataDir)).samples.get(metric) === count);
}

/** Sends a request and stops reading when the answer begins. */
async function stall(
  where: { unix: string } | { hostname: string; port: number },
  request: string,
) {
  const answered = Promise.withResolvers<void>();
  const ended = Promise.withResolvers<void>();
  let text = "";
  const handlers = {
    data: (client: Bun.Socket, chunk: Buffer) => {
      if (text === "") client.pause();
      text += chunk.toString("latin1");
      answered.resolve();
    },
    close: () => ended.resolve(),
  };
  const socket = await ("unix" in where
    ? Bun.connect({ ...where, socket: handlers })
    : Bun.connect({ ...where, socket: handlers }));
  socket.write(request);
  await answered.promise;
  const rest = async (): Promise<string> => {
    socket.resume();
    await ended.promise;
    return text;
  };
  return { terminate: () => socket.terminate(), rest };
}

describe("a damaged signal", () => {
  test("ends the page before it, is an error alone, and a reader can continue after it", async () => {
    const { read, store, dataDir } = await startFeedApp();
    const ids: string[] = [];
    // More than a chunk has.
    for (let index = 0; index < 100; index += 1) ids.push(await store());
    const damage = (id = "") =>
      openForDamage(dataDir).run("UPDATE signals SET price = 84000 WHERE id = ?", [id]);
    const [before, damaged] = [ids[79] ?? "", ids[80] ?? ""];
    damage(damaged);
    const first = await read();
    expect(first.ids).toEqual(ids.slice(0, 80));
    expect(first.end).toEqual({ next: before, done: false });
    for (const parameters of [{ after: before }, { after: before, wait: 1, limit: 1 }]) {
      const { status, error } = await read(parameters);
      expect([status, error]).toEqual([
        409,
        { error: "damaged_signal", message: expect.stringContaining(`Signal ${damaged} is`) },
      ]);
    }
    expect((await read({ after: damaged })).ids).toEqual(ids.slice(81));
    damage(ids[99]);
    expect((await read({ after: damaged })).end).toEqual({ next: ids[98] ?? "", done: false });
    expect((await read({ after: "now" })).end).toEqual({ next: ids[99] ?? "", done: true });
    expect((await askStatus(dataDir))?.damaged_signals).toEqual([damaged, ids[99] ?? ""]);
  });
});

describe("a page", () => {
  test("has the signals of the desk in the order of storage, with all fields, then the cursor", async () => {
    const { read, store, registry, dataDir } = await startFeedApp();
    const beta = (await mintKey(registry, "beta")).key;
    const metadata = '{"big":12345678901234567890,"a":1.50}';
    const first = await store({ price: 1.5, client_signal_id: "c-1" });
    await store({}, beta);
    const second = await store({ metadata: { placeholder: true } });
    const answer = await read();
    expect(answer.ids).toEqual([first, second]);
    expect(answer.end).toEqual({ next: second, done: true });
    expect(answer.signals[0]).toMatchObject({
      desk: "alpha",
      price: 1.5,
      client_signal_id: "c-1",
      quantity: null,
      key_label: null,
    });
    expect(answer.headers.get("Cache-Control")).toBe("no-store");
    const db = openForDamage(dataDir);
    db.run("UPDATE signals SET metadata = ? WHERE id = ?", [metadata, second]);
    hashSignals(db);
    expect((await read({ after: first })).text).toContain(`"metadata":${metadata}}\n`);
  });

  test("has metadata as it was sent, with spaces for line breaks and tabs, as the document says", async () => {
    const { feedUrl, read, url, key } = await startFeedApp();
    const body = `{"source":"venue_1","type":"stock","symbol":"A","side":"open","metadata":{"a":\r\n\t1.0, "b":"\\n"}}`;
    await callUrl(url, "/v1/signals", posting(key, body));
    expect((await read()).text).toContain('"metadata":{"a":   1.0, "b":"\\n"}}\n');
    const description = await (await fetch(feedUrl.replace("/feed", "/openapi.yaml"))).text();
    expect(description).toContain("line breaks and tabs between its tokens are spaces");
    expect(description).not.toContain("to the byte");
  });

  test("continues after the cursor, and has at most `limit` signals", async () => {
    const { read, store } = await startFeedApp();
    const ids: string[] = [];
    for (let index = 0; index < 5; index += 1) ids.push(await store());
    const page = await read({ limit: 2 });
    expect([page.ids, page.end]).toEqual([ids.slice(0, 2), { next: String(ids[1]), done: false }]);
    const rest = await read({ after: String(ids[1]).toLowerCase(), limit: 3 });
    expect([rest.ids, rest.end]).toEqual([ids.slice(2), { next: String(ids[4]), done: true }]);
    const nothing = await read({ after: String(ids[4]) });
    expect(nothing.text).toBe(`{"next":"${ids[4]}","done":true}\n`);
  });

  test("of a large database is made of several reads, and ends at about 1 MiB", async () => {
    const { read, store } = await startFeedApp();
    const note = "漢".repeat(20_000);
    const ids: string[] = [];
    for (let index = 0; index < 25; index += 1) ids.push(await store({ metadata: { note } }));
    const page = await read();
    // It is counted in bytes.
    expect(Buffer.byteLength(page.text)).toBeLessThan(1_048_576 + 7 * 61_000);
    expect(page.end.done).toBe(false);
    const rest = await read({ after: String(page.end.next) });
    expect([...page.ids, ...rest.ids]).toEqual(ids);
  });

  test("without signals has no cursor", async () => {
    const { read } = await startFeedApp();
    expect((await read()).end).toEqual({ next: null, done: true });
    expect((await read({ after: "now" })).end).toEqual({ next: null, done: true });
  });

  test("after=now begins with the next signal", async () => {
    const { dataDir, read, store } = await startFeedApp();
    const old = await store();
    expect((await read({ after: "now" })).text).toBe(`{"next":"${old}","done":true}\n`);
    const waits = read({ after: "now", wait: 60 });
    await waiting(dataDir);
    const next = await store();
    expect((await waits).ids).toEqual([next]);
  });
});

describe("bad parameters", () => {
  test("get 422 with all reasons", async () => {
    const { feedUrl, readKey } = await startFeedApp();
    const limit = "must be a whole number from 1 to 1000";
    const wait = "must be a whole number from 0 to 60";
    const after = "must be the id of a signal, or now";
    const unknown = "unknown parameter; the feed takes desk, after, limit, wait";
    const wrong: Record<string, Record<string, string>> = {
      "limit=0": { limit },
      "limit=1001&wait=61": { limit, wait },
      "limit=&wait=-1": { limit, wait },
      "wait=1.5": { wait },
      "after=": { after },
      "after=yesterday": { after },
      "desk=": { desk: "must be the name of a desk" },
      "desc=alpha": { desc: "unknown parameter; did you mean desk?" },
      "limit=1&limit=2": { limit: "must be given once" },
      "__proto__=1": { ["__proto__"]: unknown },
    };
    for (const [search, fields] of Object.entries(wrong)) {
      const { status, error } = await readFeed(feedUrl, readKey, search);
      const expected = { error: "validation_failed", fields };
      expect([search, status, JSON.stringify(error)]).toEqual([
        search,
        422,
        JSON.stringify(expected),
      ]);
    }
  });

  test("get 400 if there are too many", async () => {
    const { feedUrl, readKey } = await startFeedApp();
    const { status, error } = await readFeed(feedUrl, readKey, "a&".repeat(7_000));
    const message = "The query has more than 100 parameters.";
    expect([status, error]).toEqual([400, { error: "bad_request", message }]);
  });

  test("a cursor that is not stored, as after a restore, is refused", async () => {
    const { read, store, registry } = await startFeedApp();
    await store();
    const answer = await read({ after: UNKNOWN_ID });
    expect(answer.status).toBe(422);
    expect(JSON.stringify(answer.error)).toContain("was the database restored from a backup?");
    const ofOther = await store({}, (await mintKey(registry, "beta")).key);
    expect((await read({ after: ofOther })).status).toBe(422);
  });
});

describe("who may read", () => {
  test("a key for one desk reads that desk, and another desk is as unknown as one that does not exist", async () => {
    const { feedUrl, readKey, read, store, registry } = await startFeedApp();
    const id = await store();
    await store({}, (await mintKey(registry, "beta")).key);
    expect((await read({ desk: "alpha" })).ids).toEqual([id]);
    const other = await readFeed(feedUrl, readKey, { desk: "beta" });
    const unknown = await readFeed(feedUrl, readKey, { desk: "gamma" });
    expect([other.status, other.error]).toEqual([422, unknown.error]);
  });

  test("a key for all desks reads all, or the one it asks for", async () => {
    const { feedUrl, allKey, store, registry } = await startFeedApp();
    const beta = (await mintKey(registry, "beta")).key;
    const ids = [await store(), await store({}, beta), await store()];
    expect((await readFeed(feedUrl, allKey)).ids).toEqual(ids);
    expect((await readFeed(feedUrl, allKey, { desk: "beta" })).ids).toEqual([String(ids[1])]);
    const after = { desk: "beta", after: String(ids[0]) };
    expect((await readFeed(feedUrl, allKey, after)).ids).toEqual([String(ids[1])]);
  });

  test("a send key reads nothing, and a read key stores nothing, with the answer of an unknown key", async () => {
    const { feedUrl, key, readKey, allKey, post, dataDir } = await startFeedApp();
    const unknown = answerOf(await readFeed(feedUrl, `sbr_${"0".repeat(64)}`));
    expect(unknown[0]).toBe(401);
    const asRead = key.replace("sbk_", "sbr_");
    for (const wrong of [key, asRead]) {
      expect(answerOf(await readFeed(feedUrl, wrong))).toEqual(unknown);
    }
    const valid = { source: "venue_1", type: "stock", symbol: "A", side: "open" };
    for (const wrong of [readKey, allKey, readKey.replace("sbr_", "sbk_")]) {
      const { status, body } = await post(valid, { Authorization: `Bearer ${wrong}` });
      expect([status, body]).toEqual(unknown as [number, Record<string, unknown>]);
    }
    expect(query(dataDir, "SELECT id FROM signals")).toEqual([]);
  });

  test("X-API-Key is taken, and no key or a malformed header gets a hint", async () => {
    const { feedUrl, readKey } = await startFeedApp();
    const headers = { "X-API-Key": readKey };
    expect((await readFeed(feedUrl, null, {}, { headers })).status).toBe(200);
    const none = await readFeed(feedUrl, null);
    expect([none.status, none.headers.get("WWW-Authenticate")]).toEqual([401, "Bearer"]);
    expect(none.error["message"]).toContain("send the header Authorization");
    const bare = await readFeed(feedUrl, null, {}, { headers: { Authorization: readKey } });
    expect(bare.error["message"]).toContain("The word Bearer is missing");
  });

  test("keys that have ended get 401", async () => {
    const { feedUrl, registry, mintRead } = await startFeedApp();
    const { key, id } = await mintRead("alpha");
    const status = async () => (await readFeed(feedUrl, key)).status;
    await registry.archiveDesk("alpha", true);
    expect(await status()).toBe(401);
    await registry.archiveDesk("alpha", false);
    expect(await status()).toBe(200);
    await registry.revokeKey(id);
    expect(await status()).toBe(401);
  });

  test("a key outside its networks gets 401 like an unknown one, and counts as no key that has ended", async () => {
    const { feedUrl, registry, dataDir, log } = await startFeedApp();
    const mint = (networks: string[]) =>
      registry.mintKey({
        scope: "read",
        desk: "alpha",
        label: null,
        expiresInMs: null,
        limits: { networks },
      });
    const inside = await mint(["127.0.0.0/8"]);
    expect((await readFeed(feedUrl, inside.key)).status).toBe(200);
    const outside = await mint(["203.0.113.0/24"]);
    const unknown = await readFeed(feedUrl, `sbr_${"0".repeat(64)}`);
    expect(answerOf(await readFeed(feedUrl, outside.key))).toEqual(answerOf(unknown));
    const keyId = outside.record.id;
    const line = { error: "foreign_network", key_id: keyId, client: "127.0.0.1", desk: "alpha" };
    expect(log.findLast(({ status }) => status === 401)).toMatchObject(line);
    expect((await askStatus(dataDir))?.refused_keys).toEqual([]);
    expect((await registry.findKey(keyId))?.last_used_at).toBeNull();
  });

  test("a key over its own rate gets 429; other readers do not", async () => {
    const { feedUrl, registry, read } = await startFeedApp();
    const { key } = await registry.mintKey({
      scope: "read",
      desk: "alpha",
      label: null,
      expiresInMs: null,
      limits: { rate: 1 },
    });
    const answers = await Promise.all(Array.from({ length: 12 }, () => readFeed(feedUrl, key)));
    const refused = answers.filter(({ status }) => status !== 200);
    expect(refused.length).toBeGreaterThan(0);
    for (const { status, headers, error } of refused) {
      expect([status, error["error"]]).toEqual([429, "rate_limited"]);
      expect(error["message"]).toStartWith("The key is limited to 1 per second;");
      expect(headers.get("Retry-After")).toBe("1");
    }
    expect((await read()).status).toBe(200);
  });

  test("keys that have ended are remembered for a day after they were last refused", async () => {
    let now = Date.now();
    const { dataDir, feedUrl, registry, mintRead } = await startFeedApp({ now: () => now });
    const [twice, once, late] = [
      await mintRead("alpha"),
      await mintRead("alpha"),
      await mintRead("alpha"),
    ];
    for (const { id } of [twice, once, late]) await registry.revokeKey(id);
    const refuse = async ({ key }: { key: string }) =>
      expect((await readFeed(feedUrl, key)).status).toBe(401);
    const remembered = async () =>
      (await askStatus(dataDir))?.refused_keys?.map(({ key_id }) => key_id);
    await refuse(twice);
    await refuse(once);
    now += DAY_MS / 2;
    await refuse(twice);
    expect(await remembered()).toEqual([once.id, twice.id]);
    now += DAY_MS / 2 + 1;
    await refuse(late);
    expect(await remembered()).toEqual([twice.id, late.id]);
  });

  test("the socket in the data folder needs no key, and the public interface has no feed", async () => {
    const { dataDir, store, call, app } = await startFeedApp({ config: { readListen: null } });
    expect(app.feedUrl).toBeNull();
    const id = await store();
    expect((await readOwn(dataDir)).ids).toEqual([id]);
    const waits = readOwn(dataDir, { after: id, wait: 60 });
    await waiting(dataDir);
    const next = await store();
    expect((await waits).ids).toEqual([next]);
    expect((await readOwn(dataDir, { limit: 0 })).status).toBe(422);
    const posted = await readOwn(dataDir, {}, { method: "POST", body: "{}" });
    expect([posted.status, posted.headers.get("Allow")]).toEqual([405, "GET, HEAD"]);
    const unix = join(dataDir, "ops.sock");
    const head = await fetch("http://localhost/feed", { unix, method: "HEAD" });
    expect(head.status).toBe(200);
    expect((await call("/feed")).status).toBe(404);
  });

  test("the use of a read key is recorded, once a minute", async () => {
    let now = Date.now();
    const { read, registry } = await startFeedApp({ now: () => now });
    const lastUse = async () =>
      (await registry.listKeys("alpha")).find(({ scope }) => scope === "read")?.last_used_at;
    expect(await lastUse()).toBeNull();
    const first = now;
    await read();
    while ((await lastUse()) === null) await Bun.sleep(5);
    now += 59_000;
    await read();
    await Bun.sleep(50);
    expect(await lastUse()).toBe(first);
    now += 1_000;
    await read();
    while ((await lastUse()) === first) await Bun.sleep(5);
    expect(await lastUse()).toBe(now);
  });
});

describe("a reader that waits", () => {
  test("is answered when a signal of its desk is stored, and not for another desk's", async () => {
    const { dataDir, feedUrl, readKey, store, registry } = await startFeedApp();
    const beta = (await mintKey(registry, "beta")).key;
    let isAnswered = false;
    const waits = readFeed(feedUrl, readKey, { wait: 60 }).finally(() => (isAnswered = true));
    await waiting(dataDir);
    await store({}, beta);
    await Bun.sleep(50);
    expect(isAnswered).toBe(false);
    const id = await store();
    expect((await waits).ids).toEqual([id]);
  });

  test("gets an empty page when the time is over", async () => {
    const { read, store } = await startFeedApp();
    const id = await store();
    const { text } = await read({ after: id, wait: 1 });
    expect(text).toBe(`{"next":"${id}","done":true}\n`);
  });

  test("gets 401 after its key was revoked", async () => {
    const { dataDir, feedUrl, mintRead, registry } = await startFeedApp();
    const { key, id } = await mintRead("alpha");
    const waits = readFeed(feedUrl, key, { wait: 60 });
    await waiting(dataDir);
    await registry.revokeKey(id);
    expect((await waits).status).toBe(401);
  });

  test("does not ask with HEAD", async () => {
    const { feedUrl, readKey, stop } = await startFeedApp();
    const headers = { Authorization: `Bearer ${readKey}` };
    const head = await fetch(`${feedUrl}?wait=60`, { method: "HEAD", headers });
    expect([head.status, head.headers.get("Content-Type")]).toEqual([200, "application/x-ndjson"]);
    const wrong = await fetch(`${feedUrl}?wait=61`, { method: "HEAD", headers });
    expect(wrong.status).toBe(422);
    await stop();
  });

  test("is answered at once when the server stops", async () => {
    const { dataDir, read, stop } = await startFeedApp({ config: { stopTimeoutMs: 60_000 } });
    const waits = read({ wait: 60 });
    await waiting(dataDir);
    const stopped = stop();
    const answer = await waits;
    expect([answer.status, answer.text]).toEqual([200, '{"next":null,"done":true}\n']);
    await stopped;
  });

  test("no longer counts when it disconnects", async () => {
    const { dataDir, feedUrl, readKey, read } = await startFeedApp();
    for (let round = 0; round < 2; round += 1) {
      const gone = new AbortController();
      const all = Array.from({ length: KEY_REQUESTS_MAX }, () =>
        readFeed(
          feedUrl,
          readKey,
          { wait: 60 },
          {
            headers: { Authorization: `Bearer ${readKey}` },
            signal: gone.signal,
          },
        ).catch(() => null),
      );
      await waiting(dataDir, KEY_REQUESTS_MAX);
      const refused = await read();
      expect([refused.status, refused.headers.get("Retry-After")]).toEqual([429, "1"]);
      gone.abort();
      await Promise.all(all);
      while ((await read()).status === 429) await Bun.sleep(5);
    }
  });
});

test("requests in progress are limited per reader, per desk and in total; the socket is apart", () => {
  const limit = new ConcurrencyLimit();
  const begin = (keyId: string | null, deskId: number | null, count: number) =>
    Array.from({ length: count }, () => limit.begin({ keyId, deskId }));
  const refused = (keyId: string | null, deskId: number | null) => {
    try {
      limit.begin({ keyId, deskId });
      return null;
    } catch (error) {
      const { code, message, detail } = error as AppError;
      return [code, detail.retryAfterS, message.split(";")[0]];
    }
  };
  const ofKey = begin("a", 1, 16);
  expect(refused("a", 1)).toEqual(["rate_limited", 1, "This reader has 16 requests in progress"]);
  begin("b", 1, 16);
  expect(refused("c", 1)).toEqual([
    "rate_limited",
    1,
    "The readers of this desk have 32 requests in progress",
  ]);
  for (const key of ["d", "e"]) begin(key, null, 16);
  expect(refused("f", null)).toEqual([
    "rate_limited",
    1,
    "The readers of all desks have 32 requests in progress",
  ]);
  for (const key of ["g", "h"]) begin(key, 2, 16);
  for (const key of ["i", "j"]) begin(key, 3, 16);
  expect(refused("k", 9)).toEqual([
    "unavailable",
    1,
    "All readers together have 128 requests in progress",
  ]);
  expect(refused(null, null)).toBeNull();
  ofKey[0]?.[Symbol.dispose]();
  expect([refused("k", 9), refused("k", 9)?.[0]]).toEqual([null, "unavailable"]);
});

/** More than the kernel keeps of an answer. */
async function storeMuch(store: (fields: object) => Promise<string>): Promise<string[]> {
  const note = "x".repeat(60_000);
  const ids: string[] = [];
  for (let index = 0; index < 16; index += 1) ids.push(await store({ metadata: { note } }));
  return ids;
}

describe("a reader that does not read its answer", () => {
  test("does not delay a stop: its answer is cut", async () => {
    const config = { stopTimeoutMs: 60_000 };
    const { feedUrl, readKey, store, stop, log } = await startFeedApp({ config });
    await storeMuch(store);
    const { hostname, port } = new URL(feedUrl);
    const request = `GET /feed HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${readKey}\r\n\r\n`;
    const reader = await stall({ hostname, port: Number(port) }, request);
    await stop();
    const text = await reader.rest();
    expect(text).toStartWith("HTTP/1.1 200");
    expect(text).not.toContain('{"next":');
    expect(log.filter(({ level }) => level === "warn" || level === "error")).toEqual([]);
    // Less than the silence after which the server gives up a reader.
  }, 25_000);

  test("counts as in progress until it disconnects", async () => {
    const { dataDir, store } = await startFeedApp();
    const unix = join(dataDir, "ops.sock");
    const first = await store();
    const ids = await storeMuch(store);
    const read = () => readOwn(dataDir, { after: first });
    const request = `GET /feed?after=${first} HTTP/1.1\r\nHost: localhost\r\n\r\n`;
    const stalled = Array.from({ length: KEY_REQUESTS_MAX }, () => stall({ unix }, request));
    await Promise.all(stalled);
    const refused = await read();
    expect(refused.status).toBe(429);
    expect(refused.error["message"]).toContain("This reader has 16 requests in progress");
    for (const socket of await Promise.all(stalled)) socket.terminate();
    let answer = await read();
    while (answer.status === 429) {
      await Bun.sleep(5);
      answer = await read();
    }
    expect(answer.ids).toEqual(ids);
  });

  test("has a small send buffer, so that the kernel does not buffer the whole page", async () => {
    const { feedUrl, readKey } = await startFeedApp();
    const answer = await readFeed(feedUrl, readKey);
    expect(answer.status).toBe(200);
    const [connection] = PortSockets.of(Number(new URL(feedUrl).port))?.connections() ?? [];
    const [value, length] = [new Int32Array(1), new Int32Array([4])];
    const [SOL_SOCKET, SO_SNDBUF] = [1, 7];
    const fd = connection?.fd ?? -1;
    expect(loadLibc()?.getsockopt(fd, SOL_SOCKET, SO_SNDBUF, ptr(value), ptr(length))).toBe(0);
    // Linux doubles it.
    expect(value[0]).toBe(2 * SEND_BUFFER_BYTES);
  });

  test("is cut off when its key is revoked, and no longer counts", async () => {
    const line = { id: UNKNOWN_ID, metadata: null } as unknown as StoredSignal;
    const list = () => ({ signals: [line], more: UNKNOWN_ID });
    const feed = new Feed({ list } as unknown as FeedStore, new CommitNotifier());
    const cuts: unknown[] = [];
    for (let index = 0; index < 2 * KEY_REQUESTS_MAX; index += 1) {
      let checks = 0;
      const recheck = () => {
        checks += 1;
        if (checks === 3) throw new AppError("unauthorized");
      };
      const access = { keyId: "reader", deskId: null, recheck };
      const gone = new AbortController().signal;
      const onCut = (error: unknown) => void cuts.push(error);
      const reader = (
        (await feed.read({ search: "", mayWait: true, access, gone, onCut })) as ReadableStream
      ).getReader();
      expect((await reader.read()).done).toBe(false);
      expect((await reader.read()).done).toBe(false);
      expect(await rejection(reader.read())).toMatchObject({ code: "unauthorized" });
    }
    expect(cuts).toHaveLength(2 * KEY_REQUESTS_MAX);
  });
});

test("readers that ask without a pause take at most their share of the thread", async () => {
  const { feedUrl, readKey, store } = await startFeedApp();
  await store();
  const headers = { Authorization: `Bearer ${readKey}` };
  const startedAt = performance.now();
  const isOver = () => performance.now() - startedAt > 1_000;
  let count = 0;
  const loop = async (search: string, status: number): Promise<void> => {
    while (!isOver()) {
      const answer = await fetch(`${feedUrl}?${search}`, { headers });
      await answer.text();
      expect(answer.status).toBe(status);
      count += 1;
    }
  };
  const half = KEY_REQUESTS_MAX / 2;
  const reads = Array.from({ length: half }, () => loop("limit=1", 200));
  const mistakes = Array.from({ length: half }, () => loop("limit=0", 422));
  await Promise.all([...reads, ...mistakes]);
  // However fast the machine is, a request is followed by a rest. A slow machine answers fewer.
  const restMs = REQUEST_MS * REST_FACTOR;
  expect(count).toBeLessThanOrEqual((performance.now() - startedAt) / restMs + KEY_REQUESTS_MAX);
});

describe("the read listener", () => {
  test("serves its own description, and nothing else", async () => {
    const { feedUrl, readKey } = await startFeedApp();
    const base = feedUrl.replace(/\/feed$/, "");
    const description = await fetch(`${base}/openapi.yaml`);
    expect(description.headers.get("Content-Type")).toBe("application/yaml");
    expect(await description.text()).toContain("operationId: getFeed");
    const headers = { Authorization: `Bearer ${readKey}` };
    for (const path of ["/", "/v1/signals", "/feed/", "/healthz"]) {
      const answer = await fetch(base + path, { headers });
      expect([answer.status, await answer.json()]).toMatchObject([
        404,
        { message: "This path does not exist; signals are read with GET /feed." },
      ]);
    }
    const posted = await fetch(feedUrl, { method: "POST", headers, body: "{}" });
    expect([posted.status, posted.headers.get("Allow")]).toEqual([405, "GET, HEAD"]);
    const head = await fetch(feedUrl, { method: "HEAD", headers });
    expect([head.status, await head.text()]).toEqual([200, ""]);
  });

  test("uses the certificate, and a new one for new connections, while a reader waits", async () => {
    const [first, second] = [await makeCertificate("first"), await makeCertificate("second")];
    const folder = temporaryFolder();
    const tls = writeCertificate(folder, first);
    const { dataDir, app, url, feedUrl, readKey, key } = await startFeedApp({ config: { tls } });
    expect(feedUrl).toStartWith("https://127.0.0.1:");
    const headers = { Authorization: `Bearer ${readKey}` };
    const waits = readFeed(feedUrl, null, { wait: 60 }, { headers, ...trusting });
    await waiting(dataDir);
    writeCertificate(folder, second);
    app.reloadCertificate();
    expect(await presentedName(feedUrl)).toBe("second");
    const posted = await callUrl(url, "/v1/signals", posting(key, signal, trusting));
    const answer = await waits;
    expect(answer.ids).toEqual([String(posted.body["id"])]);
    expect(answer.headers.get("Connection")).toBe("close");
  });

  test("requires HTTPS behind a proxy that got plain HTTP", async () => {
    const { feedUrl, readKey } = await startFeedApp({ config: { trustedProxies: ["127.0.0.1"] } });
    const headers = { Authorization: `Bearer ${readKey}` };
    const said = (proto: string) => ({ headers: { ...headers, "X-Forwarded-Proto": proto } });
    expect((await readFeed(feedUrl, null, {}, said("http"))).status).toBe(403);
    expect((await readFeed(feedUrl, null, {}, said("https"))).status).toBe(200);
  });

  test("answers 503 when the database cannot be read, with a message for readers", async () => {
    const { read, dataDir, store, fatal } = await startFeedApp();
    await store();
    const db = openForDamage(dataDir);
    // The server reads pages again that changed.
    db.run("UPDATE api_keys SET label = 'other'");
    db.run("PRAGMA wal_checkpoint(TRUNCATE)");
    const file = join(dataDir, DATABASE_NAME);
    const pages = readFileSync(file);
    writeFileSync(file, pages.fill(0x55, 4096));
    const { status, headers, error } = await read();
    expect([status, headers.get("Retry-After"), error]).toEqual([
      503,
      "1",
      { error: "unavailable", message: messages.unavailable },
    ]);
    expect(fatal).toHaveLength(1);
  });
});

test("no key is in the log", async () => {
  const { read, readKey, log, feedUrl } = await startFeedApp();
  await read({ limit: 0 });
  await readFeed(feedUrl, `${readKey.slice(0, -1)}x`);
  await read();
  expect(log.length).toBeGreaterThan(2);
  expect(JSON.stringify(log)).not.toContain(readKey.slice(0, 20));
});

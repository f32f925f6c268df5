/** Duplicates that come again and again: what is answered without the writer, and what never is. */
import { expect, onTestFinished, setDefaultTimeout, spyOn, test } from "bun:test";
import { readStrictly, type Signal } from "../src/domain/signal.ts";
import type { Appended, Submission } from "../src/domain/store.ts";
import {
  REPEAT_FRESH_MS,
  RepeatMemory,
  REPEATS_MAX,
  REPEATS_UNITS_MAX,
} from "../src/store/sqlite/repeats.ts";
import { SqliteStore } from "../src/store/sqlite/store.ts";
import { Writer } from "../src/store/sqlite/writer.ts";
import { send } from "./_raw.ts";
import {
  mintKey,
  onCleanup,
  openForDamage,
  query,
  signal,
  startTestApp,
  type TestApp,
  type TestAppOptions,
} from "./_setup.ts";
import { prepare } from "./_submissions.ts";

setDefaultTimeout(60_000);

const repeated = {
  ...signal,
  direction: "long",
  price: 1.5,
  quantity: 2,
  signal_time: 1_790_000_000_000,
  client_signal_id: "a",
  metadata: { a: 1 },
};

/** How many signals went to the writer so far. */
function countCrossings(): () => number {
  const append = spyOn(Writer.prototype, "append");
  onTestFinished(() => append.mockRestore());
  return () => append.mock.calls.length;
}

/** Moves the clock that never steps back. */
function movableClock(): (ms: number) => void {
  const real = performance.now.bind(performance);
  let movedMs = 0;
  const now = spyOn(performance, "now").mockImplementation(() => real() + movedMs);
  onTestFinished(() => now.mockRestore());
  return (ms) => {
    movedMs += ms;
  };
}

/** `repeated` is stored, and remembered as a duplicate. */
async function startRemembering(options: TestAppOptions = {}) {
  const crossings = countCrossings();
  const app = await startTestApp(options);
  const { status, body } = await app.post(repeated);
  expect(status).toBe(201);
  const answer = { id: body["id"], deduped: true };
  expect((await app.post(repeated)).body).toEqual(answer);
  expect(crossings()).toBe(2);
  return { app, answer, crossings };
}

const differing = ({ registry }: TestApp): number | undefined =>
  registry.listDesks().find(({ name }) => name === "alpha")?.differing_duplicates;

test("a duplicate that comes again gets the same answer, and does not go to the writer", async () => {
  const { app, answer, crossings } = await startRemembering();
  for (let again = 0; again < 3; again += 1) {
    const { status, body, headers } = await app.post(repeated);
    expect([status, body, headers.get("X-Duplicate-Differs")]).toEqual([200, answer, null]);
  }
  // The same content in another order, and its price in another spelling.
  const { client_signal_id, ...rest } = repeated;
  const spelling = JSON.stringify({ client_signal_id, ...rest }).replace(":1.5,", ": 15e-1,");
  expect(spelling).toContain("15e-1");
  expect((await app.post(spelling)).body).toEqual(answer);
  expect(crossings()).toBe(2);
  expect(query(app.dataDir, "SELECT id FROM signals")).toEqual([{ id: answer.id }]);
});

const changes: { [Name in keyof Signal]?: unknown } = {
  source: "venue_3",
  type: "stock",
  symbol: "BTC/USDT ",
  side: "close",
  direction: undefined,
  price: 1.5000000000000002,
  quantity: undefined,
  signal_time: 1_790_000_000_001,
  metadata: { a: 2 },
};

test("one that differs in any field goes to the writer, which names the field and counts it", async () => {
  const { app, answer, crossings } = await startRemembering();
  let sent = 0;
  for (const [name, value] of Object.entries(changes)) {
    sent += 1;
    const { status, body, headers } = await app.post({ ...repeated, [name]: value });
    expect([status, body, headers.get("X-Duplicate-Differs")]).toEqual([200, answer, name]);
    expect([name, crossings(), differing(app)]).toEqual([name, 2 + sent, sent]);
    // It has not taken the place of the one that does not differ.
    expect((await app.post(repeated)).headers.get("X-Duplicate-Differs")).toBeNull();
    expect(crossings()).toBe(2 + sent);
  }
  expect((await app.post({ ...repeated, client_signal_id: "b" })).status).toBe(201);
  expect((await app.post({ ...repeated, client_signal_id: undefined })).status).toBe(201);
});

test("these are all the fields that a signal has", () => {
  const names = [...Object.keys(changes), "client_signal_id"].toSorted();
  expect(names).toEqual(Object.keys(readStrictly(JSON.stringify(repeated))).toSorted());
});

test("another key goes to the writer first, and another desk's signal is another one", async () => {
  const { app, answer, crossings } = await startRemembering();
  const other = { Authorization: `Bearer ${mintKey(app.registry, "alpha").key}` };
  expect((await app.post(repeated, other)).body).toEqual(answer);
  expect(crossings()).toBe(3);
  expect((await app.post(repeated, other)).body).toEqual(answer);
  expect(crossings()).toBe(3);
  const stranger = { Authorization: `Bearer ${mintKey(app.registry, "beta").key}` };
  const { status, body } = await app.post(repeated, stranger);
  expect(status).toBe(201);
  expect(body["id"]).not.toBe(answer.id);
  expect(crossings()).toBe(4);
});

test("a key that is revoked or has expired gets 401 for what is remembered", async () => {
  const time = { at: 1_000_000 };
  const { app } = await startRemembering({ now: () => time.at });
  const { key } = app.registry.mintKey({ desk: "alpha", label: null, expiresInMs: 1_000 });
  const expiring = { Authorization: `Bearer ${key}` };
  for (let again = 0; again < 3; again += 1) {
    expect((await app.post(repeated, expiring)).status).toBe(200);
  }
  time.at += 1_000;
  expect((await app.post(repeated, expiring)).status).toBe(401);
  expect((await app.post(repeated)).status).toBe(200);
  app.registry.revokeKey(app.keyId);
  expect((await app.post(repeated)).status).toBe(401);
});

test("a key that is revoked while a body is on its way gets 401 for what is remembered", async () => {
  const { app, crossings } = await startRemembering();
  const findOwner = spyOn(SqliteStore.prototype, "findOwner");
  onTestFinished(() => findOwner.mockRestore());
  const body = JSON.stringify(repeated);
  const head = `POST /v1/signals HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${app.key}\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n`;
  const revokeOnceSeen = (): boolean => {
    if (findOwner.mock.calls.length === 0) return false;
    app.registry.revokeKey(app.keyId);
    return true;
  };
  const pieces = [head + body.slice(0, 9), revokeOnceSeen, body.slice(9)];
  const { responses } = await send(app.app.address.port, pieces);
  expect(responses.map(({ status }) => status)).toEqual([401]);
  expect(crossings()).toBe(3);
});

test("a key that expires while a body is on its way gets 401 for what is remembered", async () => {
  const { dataDir, registry, submit } = prepare();
  const store = await openStore(dataDir);
  const expires_at = Date.now() + 3_600_000;
  const { key, record } = registry.mintKey({ desk: "alpha", label: null, expiresInMs: 3_600_000 });
  const at = (receivedAt: number) =>
    submit({ keyId: record.id, receivedAt, signal: { client_signal_id: "a" } });
  for (let again = 0; again < 3; again += 1) {
    store.findOwner(key);
    await store.append(at(expires_at - 60_000));
  }
  store.findOwner(key);
  const late = await store.append(at(expires_at + 60_000)).catch((error: unknown) => error);
  expect(late).toMatchObject({ code: "unauthorized" });
});

test("an answer is given for a short time: the last use of a key is still noted", async () => {
  const move = movableClock();
  const time = { at: 1_000_000 };
  const { app, answer, crossings } = await startRemembering({ now: () => time.at });
  const lastUsed = () =>
    query<{ last_used_at: number }>(
      app.dataDir,
      "SELECT last_used_at FROM api_keys WHERE id = ?",
      app.keyId,
    )[0]?.last_used_at;
  expect(lastUsed()).toBe(1_000_000);
  time.at += 60_000;
  await app.post(repeated);
  expect([crossings(), lastUsed()]).toEqual([2, 1_000_000]);
  move(REPEAT_FRESH_MS);
  expect((await app.post(repeated)).body).toEqual(answer);
  expect([crossings(), lastUsed()]).toEqual([3, 1_060_000]);
  await app.post(repeated);
  expect(crossings()).toBe(3);
});

test("an answer is not kept fresh by others", () => {
  const move = movableClock();
  const { submit } = prepare();
  const memory = new RepeatMemory();
  const [old, recent] = ["a", "b"].map((id) => submit({ signal: { client_signal_id: id } }));
  if (old === undefined || recent === undefined) throw new Error("unreachable");
  memory.note(old, duplicate);
  move(REPEAT_FRESH_MS - 1_000);
  memory.note(recent, duplicate);
  expect([memory.find(old), memory.find(recent)]).toEqual([duplicate, duplicate]);
  move(1_000);
  expect([memory.find(old), memory.find(recent)]).toEqual([null, duplicate]);
});

test("what the writer stored, or what differs, is not remembered", () => {
  const { submit } = prepare();
  const memory = new RepeatMemory();
  const one = submit({ signal: { client_signal_id: "a" } });
  memory.note(one, { deduped: false, id: "x" });
  memory.note(one, { deduped: true, id: "x", differs: ["price"] });
  expect(memory.find(one)).toBeNull();
  memory.note(one, duplicate);
  expect(memory.find(one)).toBe(duplicate);
});

test("the oldest are forgotten when there are too many", () => {
  const { submit } = prepare();
  const memory = new RepeatMemory();
  const many = Array.from({ length: 3 * REPEATS_MAX }, (_, n) =>
    submit({ signal: { client_signal_id: `n${n}` } }),
  );
  for (const [index, submission] of many.entries()) {
    memory.note(submission, duplicate);
    expect(memory.find(submission)).toBe(duplicate);
    const old = many[index - REPEATS_MAX];
    if (old !== undefined) expect(memory.find(old)).toBeNull();
  }
  expect(known(memory, many)).toEqual(newest(many, REPEATS_MAX));
});

test("the oldest are forgotten when they are too large", () => {
  const { submit } = prepare();
  const memory = new RepeatMemory();
  const units = 60_000;
  const metadata = JSON.stringify({ a: "x".repeat(units) });
  const large = Array.from({ length: 100 }, (_, n) =>
    submit({ signal: { client_signal_id: `n${n}`, metadata } }),
  );
  for (const submission of large) memory.note(submission, duplicate);
  const kept = known(memory, large);
  expect(kept.length * units).toBeLessThanOrEqual(REPEATS_UNITS_MAX);
  expect(kept.length * units).toBeGreaterThan(REPEATS_UNITS_MAX / 3);
  expect(kept).toEqual(newest(large, kept.length));
});

test("a small signal in a large body does not hold the body in memory", () => {
  const { submit } = prepare();
  const memory = new RepeatMemory();
  const padding = " ".repeat(60_000);
  const text = JSON.stringify({ ...repeated, client_signal_id: "#" }).slice(1);
  Bun.gc(true);
  const before = process.memoryUsage.rss();
  for (let n = 0; n < REPEATS_MAX; n += 1) {
    // Not a rope: bytes as they come in.
    const body = Buffer.from(`{${padding}${text.replace("#", `id number ${n} of many`)}`);
    memory.note(submit({ signal: readStrictly(new TextDecoder().decode(body)) }), duplicate);
  }
  Bun.gc(true);
  // 246 MB of bodies went by.
  expect((process.memoryUsage.rss() - before) / 1e6).toBeLessThan(120);
  const last = text.replace("#", `id number ${REPEATS_MAX - 1} of many`);
  expect(memory.find(submit({ signal: readStrictly(`{${last}`) }))).toBe(duplicate);
});

test("once storage has failed for good nothing is answered with success", async () => {
  const { app, crossings } = await startRemembering();
  expect((await app.post(repeated)).status).toBe(200);
  openForDamage(app.dataDir).run("ALTER TABLE signals RENAME TO gone");
  // Not yet: what is remembered needs no table.
  expect((await app.post(repeated)).status).toBe(200);
  const before = crossings();
  expect((await app.post(signal)).status).toBe(503);
  expect(app.fatal).toHaveLength(1);
  for (let again = 0; again < 3; again += 1) expect((await app.post(repeated)).status).toBe(503);
  expect(crossings()).toBe(before + 4);
});

test("an answer that arrives with the failure is not remembered after it", () => {
  const { submit } = prepare();
  const memory = new RepeatMemory();
  const one = submit({ signal: { client_signal_id: "a" } });
  memory.note(one, duplicate);
  memory.close();
  expect(memory.find(one)).toBeNull();
  memory.note(one, duplicate);
  expect(memory.find(one)).toBeNull();
});

test("after a restart the writer is asked again", async () => {
  const { app, answer, crossings } = await startRemembering();
  await app.stop();
  const next = await startTestApp({ dataDir: app.dataDir });
  const headers = { Authorization: `Bearer ${app.key}` };
  expect((await next.post(repeated, headers)).body).toEqual(answer);
  expect(crossings()).toBe(3);
});

const duplicate: Appended = { deduped: true, id: "01K5QZ8F3V9X2M7T4B6N1C0D8E", differs: [] };

/** Which of them are remembered. */
function known(memory: RepeatMemory, submissions: readonly Submission[]): Submission[] {
  return submissions.filter((submission) => memory.find(submission) !== null);
}

function newest(submissions: readonly Submission[], count: number): Submission[] {
  return submissions.slice(submissions.length - count);
}

async function openStore(dataDir: string): Promise<SqliteStore> {
  const store = await SqliteStore.open(
    { dataDir, externalCheckpoints: false },
    { onFatal: () => {}, onProblem: () => {}, onRecovered: () => {} },
  );
  onCleanup(() => store.close());
  return store;
}

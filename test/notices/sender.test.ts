/** The queue at work: what arrives, what is tried again, and what happens when the database cannot be written. */
import { expect, test } from "bun:test";
import { pino } from "pino";
import type { Notice } from "../../src/domain/notice/notice.ts";
import { ADMIN } from "../../src/domain/storage/author.ts";
import type { Notices } from "../../src/domain/storage/notices.ts";
import { parseAllowed } from "../../src/notices/allow.ts";
import { addPlace, testPlace } from "../../src/notices/notifier.ts";
import { secretBoxOf } from "../../src/notices/secrets.ts";
import { Sender } from "../../src/notices/sender.ts";
import { logOptions } from "../../src/lib/log.ts";
import { DAY_MS, HOUR_MS, MINUTE_MS } from "../../src/lib/text/time.ts";
import { notesInMemory } from "../../src/store/sqlite/memory.ts";
import { recordsIn } from "../kit/records.ts";
import {
  closedOnce,
  listen,
  type LogLine,
  openForDamage,
  temporaryFolder,
  until,
} from "../kit/setup.ts";

const about = (title: string, change: Partial<Notice> = {}): Notice => ({
  kind: "storage",
  deskId: null,
  subject: "",
  phase: "once",
  title,
  text: "",
  path: null,
  ...change,
});

/** A webhook of the operator whose receiver answers as `answer` says, and a clock that is set. */
async function start() {
  const dataDir = temporaryFolder();
  const db = openForDamage(dataDir);
  const time = { at: Date.now() };
  const { notices } = recordsIn(db, () => time.at);
  const seen: string[] = [];
  const answer: { status: number; wait: Promise<void> | null } = { status: 200, wait: null };
  const origin = listen(async (request) => {
    const { data } = (await request.json()) as { data: { title: string; suppressed: number } };
    seen.push(`${data.title}${data.suppressed === 0 ? "" : ` +${data.suppressed}`}`);
    await answer.wait;
    return new Response(null, { status: answer.status });
  });
  const secrets = secretBoxOf(dataDir);
  const log: LogLine[] = [];
  const request = {
    desk: null,
    destination: "webhook",
    address: `${origin}/hook`,
    token: null,
    kinds: null,
  } as const;
  const { place } = await addPlace(notices, secrets, request, ADMIN, null);
  const notes = notesInMemory(() => time.at);
  const open = (used: Notices = notices) => {
    const sender = new Sender({
      notices: used,
      notes,
      context: { allow: [parseAllowed(new URL(origin).host)], secrets, sendMail: null },
      ownUrl: () => "https://console.example.com",
      now: () => time.at,
      log: pino(logOptions("debug"), {
        write: (line: string) => void log.push(JSON.parse(line) as LogLine),
      }),
    });
    sender.start();
    return { sender, stop: closedOnce(() => sender.stop()) };
  };
  const last = async () => (await notices.lastDeliveries(place.id, 1))[0];
  return { db, time, notices, notes, seen, answer, place, open, last, log, origin };
}

test("a notice arrives, and once", async () => {
  const { notices, seen, open, last } = await start();
  const { sender } = open();
  await sender.notify(about("one"));
  await until(async () => (await last())?.state === "delivered");
  expect(await last()).toMatchObject({ attempts: 1, answer: "answered 200" });
  await Bun.sleep(1_200);
  expect(seen).toEqual(["one"]);
  expect(await notices.due(9)).toEqual([]);
});

test("what fails is tried again later, in the order of the place, also by another process, for a day", async () => {
  const { time, seen, answer, open, last, place, notices } = await start();
  answer.status = 500;
  const first = open();
  await first.sender.notify(about("one"));
  await until(async () => (await last())?.attempts === 1);
  expect(await last()).toMatchObject({ state: "waiting", answer: "answered 500" });
  await first.stop();
  answer.status = 200;
  time.at += MINUTE_MS;
  const second = open();
  await until(async () => (await last())?.state === "delivered");
  expect(seen).toEqual(["one", "one"]);
  answer.status = 500;
  await second.sender.notify(about("two"));
  for (let hours = 0; hours < 80 && (await last())?.state !== "failed"; hours += 8) {
    const before = (await last())?.attempts ?? 0;
    await until(
      async () => ((await last())?.attempts ?? 0) > before || (await last())?.state === "failed",
    );
    time.at += 8 * HOUR_MS;
  }
  expect(
    (await notices.lastDeliveries(place.id, 9)).map(({ title, state }) => [title, state]),
  ).toEqual([
    ["two", "failed"],
    ["one", "delivered"],
  ]);
  expect(time.at).toBeGreaterThan(DAY_MS);
});

test("of two servers, one sends; when it stops, the other goes on", async () => {
  const { seen, open, last, answer, notices } = await start();
  const held = Promise.withResolvers<void>();
  const one = open();
  await until(() => one.sender.hasTurn);
  const other = open();
  answer.wait = held.promise;
  await other.sender.notify(about("first"));
  await until(() => seen.length === 1);
  await Bun.sleep(1_200);
  expect([seen, other.sender.hasTurn]).toEqual([["first"], false]);
  held.resolve();
  await until(async () => (await last())?.state === "delivered");
  await one.stop();
  await notices.enqueue(about("second"));
  await until(() => seen.length === 2);
  expect(other.sender.hasTurn).toBe(true);
});

test("when the database takes nothing, notices are sent from memory, as many as an hour may have", async () => {
  const { db, seen, open, time, log, last } = await start();
  const { sender } = open();
  await until(() => sender.hasTurn);
  for (const change of ["INSERT", "UPDATE"]) {
    db.run(
      `CREATE TEMP TRIGGER full_${change} BEFORE ${change} ON notice_deliveries BEGIN SELECT RAISE(ABORT, 'full'); END`,
    );
  }
  for (let n = 0; n < 25; n += 1) await sender.notify(about(`n${n}`));
  await until(() => seen.length === 20);
  time.at += HOUR_MS + 1;
  await sender.notify(about("after"));
  await until(() => seen.length === 21);
  expect(seen.slice(-2)).toEqual(["n19", "after +5"]);
  expect(log.find(({ level }) => level === "warn")).toMatchObject({ reason: "full" });
  expect(await last()).toBeUndefined();
}, 60_000);

test("what has arrived is not sent again while that cannot be written down", async () => {
  const { db, seen, open, last, notices, log } = await start();
  await notices.enqueue(about("one"));
  db.run(
    "CREATE TEMP TRIGGER full BEFORE UPDATE ON notice_deliveries BEGIN SELECT RAISE(ABORT, 'full'); END",
  );
  open();
  await until(() => seen.length === 1);
  await Bun.sleep(2_500);
  expect(seen).toEqual(["one"]);
  expect(log.filter(({ msg }) => msg.includes("queue of notices"))).toHaveLength(1);
  db.run("DROP TRIGGER full");
  await until(async () => (await last())?.state === "delivered");
  expect(seen).toEqual(["one"]);
});

test("a place whose receiver hangs does not hold up another, and the end of the server waits for neither", async () => {
  const { seen, open, answer, notices, origin, last } = await start();
  const beta = await notices.addPlace(
    { desk: null, destination: "email", shown: "ops@example.com", sealed: null, kinds: null },
    ADMIN,
  );
  answer.wait = new Promise(() => {});
  const { sender, stop } = open();
  await sender.notify(about("one"));
  await until(async () => (await notices.lastDeliveries(beta.id, 1))[0]?.attempts === 1);
  await until(() => seen.length === 1);
  const before = performance.now();
  await stop();
  expect(performance.now() - before).toBeLessThan(2_000);
  expect(origin).toContain("127.0.0.1");
  // It is sent again by the next.
  expect(await last()).toMatchObject({ state: "waiting", attempts: 0 });
});

test("a test says what the receiver answered", async () => {
  const { open, notices, place, answer, seen } = await start();
  open();
  expect(await testPlace(notices, place.id)).toMatchObject({
    state: "delivered",
    answer: "answered 200",
  });
  answer.status = 403;
  expect(await testPlace(notices, place.id)).toMatchObject({
    state: "failed",
    attempts: 1,
    answer: "answered 403",
  });
  expect(seen).toEqual(["a test", "a test"]);
});

test("a notice to a place that was removed meanwhile is given up", async () => {
  const { open, notices, place, seen, db } = await start();
  await notices.enqueue(about("one"));
  // As a restore may do, which knows the place's end but brings back the delivery.
  db.run("UPDATE notice_places SET removed_at = 1");
  open();
  await until(async () => (await notices.lastDeliveries(place.id, 1))[0]?.state === "failed");
  expect(seen).toEqual([]);
});

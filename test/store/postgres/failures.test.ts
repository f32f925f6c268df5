/** What a server does while its PostgreSQL fails. */
import { until } from "../../kit/setup.ts";
import { expect, test } from "bun:test";
import { AppError } from "../../../src/domain/errors.ts";
import { everySignal } from "../../../src/domain/signal/stored-signal.ts";
import { explain } from "../../../src/store/postgres/failures.ts";
import { failure } from "../../storage/start.ts";
import { type Gate, startGate } from "./_gate.ts";
import { postgresTest, query, runIn, startServers } from "./_servers.ts";

const unavailable = new AppError("unavailable", { retryAfterS: 1 });
const everything = { deskId: null, filter: everySignal, order: "oldest", limit: 100 } as const;

async function start() {
  let gate: Gate | null = null;
  const started = await startServers(1, async (database) => {
    gate = await startGate(database);
    return gate.url;
  });
  await started.one.append(started.submit("first"));
  return { ...started, gate: gate as unknown as Gate };
}

postgresTest(
  "signals whose answer was lost are stored once, and those without an id refused",
  async () => {
    const { one, signals, submit, gate } = await start();
    gate.loseAnswerTo('"client_signal_id":"a"');
    const known = ["a", "b"].map((id) => one.append(submit(id)));
    const unknown = failure(one.append(submit(null)));
    const answers = await Promise.all(known);
    expect(answers.map(({ deduped }) => deduped)).toEqual([false, false]);
    expect(await unknown).toEqual(unavailable);
    const { signals: stored } = await signals.list(everything);
    expect(stored.map(({ client_signal_id }) => client_signal_id)).toEqual([
      "first",
      "a",
      "b",
      null,
    ]);
    expect(stored.slice(1, 3).map(({ id }) => id)).toEqual(answers.map(({ id }) => id));
  },
);

postgresTest(
  "while the database is away signals are refused, and are stored again when it is back",
  async () => {
    const { one, submit, gate, problems, recovered, key } = await start();
    gate.shut();
    expect(await failure(one.append(submit("a")))).toEqual(unavailable);
    expect(one.queue.outage).toMatchObject({ reason: "the database does not answer" });
    expect(await failure(() => one.findOwner(key))).toEqual(unavailable);
    expect(await failure(() => one.list(everything))).toEqual(unavailable);
    expect(problems).toContainEqual(expect.objectContaining({ kind: "unavailable", signals: 1 }));
    gate.open();
    await until(() => one.queue.outage === null);
    expect(recovered).toEqual([0]);
    expect(await one.append(submit("a"))).toMatchObject({ deduped: false });
  },
);

postgresTest(
  "a connection that does not answer is given up after ten seconds",
  async () => {
    const { one, submit, gate } = await start();
    gate.freeze();
    const startedAt = performance.now();
    expect(await failure(one.append(submit("a")))).toEqual(unavailable);
    expect(performance.now() - startedAt).toBeGreaterThan(9_000);
    gate.open();
    await until(() => one.queue.outage === null);
    expect((await one.append(submit("b"))).deduped).toBe(false);
  },
  40_000,
);

const losses = [
  {
    name: "the user's rights",
    lose: "REVOKE UPDATE ON turn FROM writer",
    code: "42501",
    reason: "the user of the database may not write",
    restore: "GRANT UPDATE ON turn TO writer",
  },
  {
    name: "its tables",
    lose: "ALTER SCHEMA public RENAME TO gone",
    code: "42P01",
    reason: "the database is empty: create a desk, or restart",
    restore: "ALTER SCHEMA gone RENAME TO public",
  },
];

postgresTest.each(losses)(
  "a database that has lost $name refuses signals until it has them again",
  async ({ lose, code, reason, restore }) => {
    let url = "";
    const { one, submit, problems, recovered } = await startServers(1, async (database) => {
      url = database;
      await query("DROP ROLE IF EXISTS writer").catch(() => {});
      await query("CREATE ROLE writer LOGIN").catch(() => {});
      await runIn(database, "GRANT ALL ON SCHEMA public TO writer");
      return Object.assign(new URL(database), { username: "writer" }).href;
    });
    await one.append(submit("first"));
    await runIn(url, lose);
    expect(await failure(one.append(submit("a")))).toEqual(unavailable);
    expect(one.queue.outage).toMatchObject({ reason });
    expect(problems[0]).toMatchObject({ reason, error: expect.stringContaining(`${code}: `) });
    await runIn(url, restore);
    await until(() => one.queue.outage === null);
    expect(recovered).toEqual([0]);
    expect(await one.append(submit("a"))).toMatchObject({ deduped: false });
  },
);

postgresTest("a read that fails is an outage with a line, until reads work again", async () => {
  let url = "";
  const { one, problems, recovered, key } = await startServers(1, (database) => {
    url = database;
    return database;
  });
  await runIn(url, "ALTER TABLE desks RENAME TO gone");
  expect(await failure(() => one.findOwner(key))).toEqual(unavailable);
  expect(one.queue.outage).not.toBeNull();
  expect(problems).toMatchObject([{ kind: "unavailable", signals: 0, obstacle: "database" }]);
  await runIn(url, "ALTER TABLE gone RENAME TO desks");
  await until(() => one.queue.outage === null);
  expect(recovered).toEqual([0]);
  expect(await one.findOwner(key)).toMatchObject({ deskName: "alpha" });
});

const explained = [
  ["25006", "the database is read-only or a standby"],
  ["55P03", "another session holds a lock on the tables"],
  ["57014", "a statement was cancelled"],
  ["53300", "too many connections to the database: raise max_connections, or the user's limit"],
  ["53100", "the database server is out of space, memory or connections"],
  ["57P01", "the database does not answer"],
];

test.each(explained)("%s is explained: %s", (code, reason) => {
  expect(explain({ code })).toBe(reason);
});

postgresTest("a row that the database refuses fails alone", async () => {
  const { one, submit, problems } = await start();
  const answers = await Promise.allSettled([
    one.append(submit("a")),
    // Validation refuses control characters.
    one.append(submit("b", { symbol: "\0" })),
    one.append(submit("c")),
  ]);
  expect(answers.map(({ status }) => status)).toEqual(["fulfilled", "rejected", "fulfilled"]);
  expect(answers[1]).toMatchObject({ reason: { message: expect.stringMatching(/^22P05: /) } });
  expect(problems).toMatchObject([{ kind: "failed", signals: 1 }]);
  expect(one.queue.outage).toBeNull();
});

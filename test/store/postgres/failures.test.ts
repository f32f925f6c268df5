/** What a server does while its PostgreSQL fails. */
import { until } from "../../kit/setup.ts";
import { expect } from "bun:test";
import { AppError } from "../../../src/domain/errors.ts";
import { everySignal } from "../../../src/domain/signal/stored-signal.ts";
import { failure } from "../../storage/start.ts";
import { type Gate, startGate } from "./_gate.ts";
import { postgresTest, startServers } from "./_servers.ts";

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
    expect(one.outage).toMatchObject({ reason: "the database does not answer" });
    expect(await failure(() => one.findOwner(key))).toEqual(unavailable);
    expect(await failure(() => one.list(everything))).toEqual(unavailable);
    expect(problems[0]).toMatchObject({ kind: "unavailable", signals: 1 });
    gate.open();
    await until(() => one.outage === null);
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
    await until(() => one.outage === null);
    expect((await one.append(submit("b"))).deduped).toBe(false);
  },
  40_000,
);

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
  expect(one.outage).toBeNull();
});

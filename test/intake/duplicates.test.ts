/** Deduplication (SPEC.md 4.1, rules 1 to 4): exactly one 201 for a desk's `client_signal_id`, for ever. */
import { expect, test } from "bun:test";
import { Writer } from "../../src/store/sqlite/append/writer.ts";
import { engineTest, type Place, startTestApps } from "../store/postgres/_engines.ts";
import { mintKey, onCleanup, query, signal, startTestApp, type TestApp } from "../kit/setup.ts";
import { noEvents } from "../storage/start.ts";
import { prepare } from "../store/_submissions.ts";

engineTest(
  "of many concurrent posts with one client_signal_id exactly one gets 201, and all get the same id",
  async (engine) => {
    const { one, other, rows } = await startTestApps(engine);
    const { key } = await mintKey(one.registry, "alpha");
    const rounds = 20;
    for (let round = 0; round < rounds; round += 1) {
      const body = { ...signal, client_signal_id: `round-${round}` };
      const answers = await Promise.all(
        Array.from({ length: 50 }, (_, index) => {
          const app = index % 2 === 0 ? one : other;
          return app.post(body, index % 3 === 0 ? {} : { Authorization: `Bearer ${key}` });
        }),
      );
      const statuses = answers.map(({ status }) => status).toSorted((a, b) => a - b);
      expect(statuses).toEqual([...Array.from({ length: 49 }, () => 200), 201]);
      expect(new Set(answers.map((answer) => answer.body["id"])).size).toBe(1);
    }
    expect(await count(rows)).toBe(rounds);
  },
);

engineTest(
  "of hundreds of signals that are sent twice at once each is stored once",
  async (engine) => {
    const { one, other, rows } = await startTestApps(engine);
    const bodies = Array.from({ length: 300 }, (_, index) => ({
      ...signal,
      client_signal_id: `signal-${index}`,
    }));
    const pairs = await Promise.all(
      bodies.map((body) => Promise.all([one.post(body), other.post(body)])),
    );
    for (const pair of pairs) {
      const [stored, repeated] = pair.toSorted((a, b) => b.status - a.status);
      expect([stored?.status, repeated?.status]).toEqual([201, 200]);
      expect(repeated?.body).toEqual({ id: stored?.body["id"], deduped: true });
    }
    expect(await count(rows)).toBe(bodies.length);
  },
);

test("a header Idempotency-Key is not read, as docs/api.md says", async () => {
  const { post } = await startTestApp();
  const again = () => post(signal, { "Idempotency-Key": "one" });
  expect([(await again()).status, (await again()).status]).toEqual([201, 201]);
  expect(await Bun.file("docs/api.md").text()).toContain("`Idempotency-Key` header is not read");
});

test("two writers on one folder, as if its lock file was deleted, store each signal once", async () => {
  const { dataDir, submit } = await prepare();
  const where = { dataDir, externalCheckpoints: false };
  const first = await Writer.start(where, noEvents);
  onCleanup(() => first.close());
  const second = await Writer.start(where, noEvents);
  onCleanup(() => second.close());
  const submissions = Array.from({ length: 200 }, (_, index) =>
    submit({ signal: { client_signal_id: String(index) } }),
  );
  const answers = await Promise.all(
    submissions.map((one) => Promise.all([first.append(one), second.append(one)])),
  );
  for (const [one, other] of answers) {
    expect(one.deduped).toBe(!other.deduped);
    expect(one.id).toBe(other.id);
  }
  expect(query(dataDir, "SELECT 1 FROM signals")).toHaveLength(submissions.length);
});

engineTest("a refused request stores nothing and leaves the id unused", async (engine) => {
  const {
    one: { post },
    other,
    rows,
  } = await startTestApps(engine);
  const named = { ...signal, client_signal_id: "a" };
  const text = JSON.stringify(named);
  for (const [status, body, headers] of [
    [422, { ...named, side: "up" }, {}],
    [400, `${text}}`, {}],
    [401, named, { Authorization: "Bearer x" }],
    [413, text + " ".repeat(65_536), {}],
    [415, named, { "Content-Type": "text/json" }],
  ] as const) {
    expect((await post(body, headers)).status).toBe(status);
  }
  expect(await count(rows)).toBe(0);
  expect((await other.post(named)).status).toBe(201);
});

test("an id is the same however its characters are escaped", async () => {
  const { post } = await startTestApp();
  const rest = JSON.stringify(signal).slice(1);
  const spellings = ["a/\u{1f600}", "\\u0061/\\ud83d\\ude00", "a\\/\\uD83D\\uDE00"];
  const statuses: number[] = [];
  for (const spelling of spellings) {
    statuses.push((await post(`{"client_signal_id":"${spelling}",${rest}`)).status);
  }
  expect(statuses).toEqual([201, 200, 200]);
});

const original = {
  ...signal,
  direction: "long",
  price: 1.5,
  quantity: 2,
  signal_time: 1_790_000_000_000,
  client_signal_id: "a",
  metadata: { a: 1, b: [1] },
};

const changes: { name: string; change: Record<string, unknown>; want: string }[] = [
  { name: "a price that is almost equal", change: { price: 1.5000000000000002 }, want: "price" },
  { name: "a field left out", change: { direction: undefined }, want: "direction" },
  {
    name: "several",
    change: { metadata: undefined, price: 2, side: "close" },
    want: "side, price, metadata",
  },
];

const title =
  "a duplicate that differs gets 200 with the fields that differ, and is counted and logged";
engineTest(title, async (engine) => {
  const {
    one,
    other: { post, registry, log, keyId },
    rows,
  } = await startTestApps(engine);
  await mintKey(registry, "beta");
  const { id } = (await one.post(original)).body;
  const stored = () => rows("SELECT * FROM signals");
  const before = await stored();
  for (const { name, change, want } of changes) {
    const { status, body, headers } = await post({ ...original, ...change });
    expect([name, status, body]).toEqual([name, 200, { id, deduped: true }]);
    expect([name, headers.get("X-Duplicate-Differs")]).toEqual([name, want]);
    const requestId = headers.get("X-Request-Id");
    const warnings = log.filter(
      (line) => line.level === "warn" && line["request_id"] === requestId,
    );
    expect(warnings).toMatchObject([
      { desk: "alpha", key_id: keyId, signal_id: id, differs: want.split(", ") },
    ]);
  }
  expect(await differing(registry)).toEqual({ alpha: changes.length, beta: 0 });
  expect(await stored()).toEqual(before);
});

async function count(rows: Place["rows"]): Promise<number> {
  return (await rows<{ n: number }>("SELECT count(*) AS n FROM signals"))[0]?.n ?? -1;
}

async function differing(registry: TestApp["registry"]): Promise<Record<string, number>> {
  return Object.fromEntries(
    (await registry.listDesks()).map((desk) => [desk.name, desk.differing_duplicates]),
  );
}

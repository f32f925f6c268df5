/** How many active keys a desk may have. */
import { describe, expect, setDefaultTimeout, test } from "bun:test";
import { SqliteAudit } from "../src/store/sqlite/audit.ts";
import { openDatabase } from "../src/store/sqlite/open.ts";
import { SqliteRegistry } from "../src/store/sqlite/registry.ts";
import { cli, expectRefusal, mintKey } from "./_cli.ts";
import { onCleanup, temporaryFolder } from "./_setup.ts";

setDefaultTimeout(60_000);

const MAX = 3;
const HOUR_MS = 60 * 60 * 1_000;

/** A desk with a limit of {@link MAX} keys, and a clock. */
function start() {
  const db = openDatabase(temporaryFolder(), "command");
  onCleanup(() => db.close());
  const time = { now: 1_000 };
  const registry = new SqliteRegistry(db, () => time.now);
  registry.createDesk("alpha", { ifMissing: false });
  registry.limitKeys("alpha", MAX);
  const mint = (expiresInMs: number | null = null) =>
    registry.mintKey({ desk: "alpha", label: null, expiresInMs }).record.id;
  const rotate = (id: string) =>
    registry.rotateKey(id, { overlapMs: HOUR_MS, expiresInMs: null }).minted.record.id;
  const active = () => registry.pageKeys({ desk: "alpha", state: "active", limit: 1_000 }).length;
  return { db, registry, time, mint, rotate, active };
}

function thrown(work: () => unknown): unknown {
  try {
    return work();
  } catch (error) {
    return error;
  }
}

const FULL = `has ${MAX} of at most ${MAX} active keys: revoke keys that are not used`;

describe("a desk at its limit of active keys", () => {
  test("gets no new key until one is revoked or expires", () => {
    const { registry, time, mint, active } = start();
    const first = mint();
    mint(HOUR_MS);
    mint();
    expect(() => mint()).toThrow(FULL);
    registry.revokeKey(first);
    mint();
    expect(() => mint()).toThrow(FULL);
    time.now += HOUR_MS;
    mint();
    expect(() => mint()).toThrow(FULL);
    expect(active()).toBe(MAX);
    expect(registry.createDesk("beta", { ifMissing: false }).desk.keys_max).toBe(100);
    registry.mintKey({ desk: "beta", label: null, expiresInMs: null });
  });

  test("can rotate each key once, which gives no more lasting keys", () => {
    const { time, mint, rotate, active } = start();
    const old = [mint(), mint(), mint()];
    const [successor = ""] = old.map(rotate);
    expect(active()).toBe(2 * MAX);
    expect(() => mint()).toThrow(FULL);
    expect(() => rotate(old[0] ?? "")).toThrow("has been rotated already");
    expect(() => rotate(successor)).toThrow(
      "has 6 active keys, 3 of which were rotated and still work",
    );
    time.now += HOUR_MS;
    expect(active()).toBe(MAX);
    expect(() => mint()).toThrow(FULL);
    rotate(successor);
    expect(active()).toBe(MAX + 1);
  });

  test("keeps its keys when the limit is lowered, and can rotate them", () => {
    const { registry, mint, rotate, active } = start();
    const ids = [mint(), mint(), mint()];
    registry.limitKeys("alpha", 2);
    expect(active()).toBe(3);
    expect(() => mint()).toThrow("has 3 of at most 2 active keys");
    expect(thrown(mint)).toMatchObject({ next: "desk limit alpha --keys 6" });
    rotate(ids[0] ?? "");
    expect(active()).toBe(4);
  });
});

test("a refused key leaves no audit entry, and the limit has one", () => {
  const { db, mint } = start();
  for (let count = 0; count < MAX; count += 1) mint();
  const audit = new SqliteAudit(db);
  const before = audit.list({ desk: "alpha", limit: 100 });
  expect(() => mint()).toThrow(FULL);
  expect(audit.list({ desk: "alpha", limit: 100 })).toEqual(before);
  expect(before.find(({ action }) => action === "desk.keys_limited")?.detail).toBe(`to ${MAX}`);
});

test("counting and listing active keys never scans those that have ended", () => {
  const { db, mint, registry } = start();
  mint();
  const asked: string[] = [];
  const recording = {
    query: (sql: string) => (asked.push(sql), db.query(sql)),
    run: db.run.bind(db),
  } as unknown as typeof db;
  const recorded = new SqliteRegistry(recording);
  const [key] = registry.listKeys("alpha");
  if (key === undefined) throw new Error("no key");
  for (const state of ["ended", "active"] as const) {
    recorded.pageKeys({ desk: "alpha", state, limit: 10 });
  }
  recorded.hasNamesake({ ...key, label: "x" });
  recorded.mintKey({ desk: "alpha", label: null, expiresInMs: null });
  const audit = new SqliteAudit(recording);
  audit.list({ desk: "alpha", key: key.id, limit: 10 });
  audit.creatorsOf("alpha", [key.id]);
  const reads = asked.filter((sql) => /^SELECT.*FROM (api_keys|audit|json_each)/s.test(sql));
  expect(reads.length).toBeGreaterThanOrEqual(6);
  for (const sql of reads) {
    const plan = db.query<{ detail: string }, []>(`EXPLAIN QUERY PLAN ${sql}`).all();
    const steps = plan.map(({ detail }) => detail).join("\n");
    expect({ sql, steps }).toEqual({ sql, steps: expect.not.stringMatching(/SCAN (?!wanted)/) });
    // The index of active keys may be sorted: there are few.
    if (sql.includes("api_keys_active")) continue;
    expect({ sql, steps }).toEqual({ sql, steps: expect.not.stringContaining("TEMP B-TREE") });
  }
});

test("desk limit sets it, and key mint says how to raise it", async () => {
  const dataDir = temporaryFolder();
  await mintKey(dataDir);
  const set = await cli(["desk", "limit", "alpha", "--keys", "1", "--data", dataDir]);
  expect(set).toEqual({ code: 0, stdout: "", stderr: 'Desk "alpha": at most 1 active key.\n' });
  await expectRefusal(
    ["key", "mint", "--desk", "alpha", "--data", dataDir],
    /"alpha" has 1 of at most 1 active key: revoke keys.*signalbox desk limit alpha --keys 2/,
  );
  const listed = await cli(["desk", "list", "--json", "--data", dataDir]);
  expect(JSON.parse(listed.stdout)).toMatchObject([{ name: "alpha", keys_max: 1 }]);
});

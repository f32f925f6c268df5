/** How many active keys a desk may have. */
import { describe, expect, setDefaultTimeout, test } from "bun:test";
import { SqliteAudit } from "../src/store/sqlite/audit.ts";
import { openDatabase } from "../src/store/sqlite/open.ts";
import { SqliteRegistry } from "../src/store/sqlite/registry.ts";
import { cli, mintKey } from "./_cli.ts";
import { onCleanup, query, temporaryFolder } from "./_setup.ts";

setDefaultTimeout(60_000);

const MAX = 3;
const HOUR_MS = 60 * 60 * 1_000;

/** A desk that may have {@link MAX} keys, and a clock. */
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

describe("a desk with as many active keys as it may have", () => {
  test("gets no further one until one of them is revoked or has expired", () => {
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

  test("can rotate each of them once, which is no way to more keys that last", () => {
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

  test("keeps the keys that it has when the limit becomes lower, and can rotate them", () => {
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

test("a refused key leaves nothing behind, and the limit is in the audit", () => {
  const { db, mint } = start();
  for (let count = 0; count < MAX; count += 1) mint();
  const audit = new SqliteAudit(db);
  const before = audit.list({ desk: "alpha", limit: 100 });
  expect(() => mint()).toThrow(FULL);
  expect(audit.list({ desk: "alpha", limit: 100 })).toEqual(before);
  expect(before.find(({ action }) => action === "desk.keys_limited")?.detail).toBe(`to ${MAX}`);
});

test("counting looks at the active keys alone, however many have ended", () => {
  const { db, mint, registry } = start();
  mint();
  const asked: string[] = [];
  const recording = {
    query: (sql: string) => (asked.push(sql), db.query(sql)),
    run: db.run.bind(db),
  } as unknown as typeof db;
  const beside = new SqliteRegistry(recording);
  beside.pageKeys({ desk: "alpha", state: "ended", limit: 10 });
  beside.pageKeys({ desk: "alpha", state: "active", limit: 10 });
  const [key] = registry.listKeys("alpha");
  if (key === undefined) throw new Error("no key");
  beside.hasNamesake({ ...key, label: "x" });
  beside.mintKey({ desk: "alpha", label: null, expiresInMs: null });
  const lists = new SqliteAudit(recording);
  lists.list({ desk: "alpha", key: key.id, limit: 10 });
  lists.creatorsOf("alpha", [key.id]);
  const keyQueries = asked.filter((sql) => /^SELECT.*FROM (api_keys|audit|json_each)/s.test(sql));
  expect(keyQueries.length).toBeGreaterThanOrEqual(6);
  for (const sql of keyQueries) {
    const plan = db.query<{ detail: string }, []>(`EXPLAIN QUERY PLAN ${sql}`).all();
    for (const { detail } of plan) {
      expect({ sql, detail }).not.toEqual({
        sql,
        detail: expect.stringMatching(/SCAN (?!wanted)/),
      });
      // Sorted are the active keys alone.
      if (sql.includes("api_keys_active")) continue;
      expect({ sql, detail }).not.toEqual({ sql, detail: expect.stringContaining("TEMP B-TREE") });
    }
  }
});

test("the command sets the limit for the running console and the command line alike", async () => {
  const dataDir = temporaryFolder();
  await mintKey(dataDir);
  const set = await cli(["desk", "limit", "alpha", "--keys", "1", "--data", dataDir]);
  expect(set).toEqual({ code: 0, stdout: "", stderr: 'Desk "alpha": at most 1 active key.\n' });
  const refused = await cli(["key", "mint", "--desk", "alpha", "--data", dataDir]);
  expect(refused.code).toBe(1);
  expect(refused.stdout).toBe("");
  expect(refused.stderr).toContain('Desk "alpha" has 1 of at most 1 active key: revoke keys');
  expect(refused.stderr).toContain("signalbox desk limit alpha --keys 2");
  const listed = await cli(["desk", "list", "--json", "--data", dataDir]);
  expect(JSON.parse(listed.stdout)).toMatchObject([{ name: "alpha", keys_max: 1 }]);
  for (const keys of ["0", "-1", "many"]) {
    const wrong = await cli(["desk", "limit", "alpha", "--keys", keys, "--data", dataDir]);
    expect([keys, wrong.code]).toEqual([keys, 2]);
  }
  const count = query<{ n: number }>(dataDir, "SELECT count(*) AS n FROM api_keys");
  expect(count).toEqual([{ n: 1 }]);
});

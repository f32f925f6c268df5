/** SQLite keeps the contract, and what only its files and queries can show. */
import type { Database } from "bun:sqlite";
import { expect, test } from "bun:test";
import { createHash } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { everySignal } from "../../src/domain/signal/stored-signal.ts";
import { openConsoleStorage, openServerStorage } from "../../src/store/open.ts";
import { BY_ADMIN } from "../../src/domain/audit/audit.ts";
import { BlockWriter } from "../../src/store/sqlite/append/blocks.ts";
import { ROWS_LOOKED_AT_MAX } from "../../src/store/records/signals/rows.ts";
import { signals as readerOf } from "../../src/store/records/signals/signals.ts";
import { sqliteSql } from "../../src/store/sqlite/sql.ts";
import { QUEUE_SIGNALS_MAX } from "../../src/store/records/queue.ts";
import { mintKey, openForDamage, query, rejection, temporaryFolder } from "../kit/setup.ts";
import { testStorage } from "./storage.contract.ts";
import { hashSignals, NO_HASH, recordsIn } from "../kit/records.ts";

const ALICE = "alice@example.com";

testStorage("SQLite", {
  queueMax: QUEUE_SIGNALS_MAX,
  make: () => {
    const dataDir = temporaryFolder();
    return async (now, events) => {
      const where = { dataDir, store: null, externalCheckpoints: false };
      const server = await openServerStorage(where, events);
      const { onWarning } = events;
      return {
        server,
        console: await openConsoleStorage(dataDir, { now, onWarning }),
        damage: async (sql) => void openForDamage(dataDir).run(sql),
      };
    };
  },
});

async function start() {
  const dataDir = temporaryFolder();
  const db = openForDamage(dataDir);
  const all = recordsIn(db);
  await all.registry.createDesk("alpha", { ifMissing: false });
  return { dataDir, db, ...all };
}

test("a change whose audit entry cannot be written is not made", async () => {
  const { db, registry, members, passkeys } = await start();
  const key = { scope: "send", desk: "alpha", label: null, expiresInMs: null } as const;
  const { record } = await registry.mintKey(key);
  const joined = await members.spendLink((await members.invite("alpha", ALICE)).token, {
    passwordHash: "hash",
  });
  const alice = { memberId: joined?.id ?? "", client: null };
  const { token } = await members.reset("alpha", ALICE);
  const bytes = new Uint8Array([1]);
  const passkey = { id: "one", name: "Laptop", public_key: bytes, counter: 0, transports: [] };
  const tables = ["desks", "api_keys", "members", "invitations", "passkeys", "audit"];
  const content = () => tables.map((table) => db.query(`SELECT * FROM ${table}`).all());
  db.run("CREATE TEMP TRIGGER full BEFORE INSERT ON audit BEGIN SELECT RAISE(ABORT, 'full'); END");
  const before = content();
  for (const change of [
    () => registry.createDesk("beta", { ifMissing: false }),
    () => registry.limitKeys("alpha", 1),
    () => registry.requirePasskeys("alpha", true),
    () => registry.mintKey(key),
    () => registry.rotateKey(record.id, { overlapMs: 0, expiresInMs: null }),
    () => registry.revokeKey(record.id),
    () => members.invite("alpha", "carol@example.com"),
    () => members.reset("alpha", ALICE),
    () => members.remove("alpha", ALICE),
    () => members.spendLink(token, { passwordHash: "hash" }),
    () => members.spendLink(token, { passkey }),
    () => members.setPassword(alice, "hash"),
    () => members.signOutEverywhere(alice),
    () => passkeys.add(alice, passkey),
  ]) {
    expect(String(await rejection(change()))).toContain("full");
    expect(content()).toEqual(before);
  }
});

test("a link's token is in no file, only its SHA-256", async () => {
  const { members, dataDir } = await start();
  const { token } = await members.invite("alpha", ALICE);
  const hashes = query<{ hash: string }>(
    dataDir,
    "SELECT lower(hex(token_hash)) AS hash FROM invitations",
  );
  expect(hashes).toEqual([{ hash: createHash("sha256").update(token).digest("hex") }]);
  const files = readdirSync(dataDir).filter((file) => file.startsWith("signalbox.db"));
  expect(files.length).toBeGreaterThan(0);
  for (const file of files) {
    const bytes = readFileSync(join(dataDir, file));
    expect([file, bytes.includes(token)]).toEqual([file, false]);
    expect(bytes.includes(Buffer.from(token, "base64url"))).toBe(false);
  }
});

test("a removed member's link does not work even if its row says that it is open", async () => {
  const { members, db } = await start();
  const { token } = await members.invite("alpha", ALICE);
  db.run("UPDATE members SET removed_at = 1");
  expect(await members.findInvitation(token)).toBeNull();
  expect(await members.spendLink(token, { passwordHash: "hash" })).toBeNull();
});

/** Remembers each query, and says how SQLite would read it. */
function remembering(db: Database) {
  const asked: string[] = [];
  const recording = {
    query: (sql: string) => (asked.push(sql), db.query(sql)),
    run: db.run.bind(db),
    fileControl: db.fileControl.bind(db),
    transaction: db.transaction.bind(db),
  } as unknown as Database;
  const planOf = (sql: string): string[] =>
    db
      .query<{ detail: string }, []>(`EXPLAIN QUERY PLAN ${sql}`)
      .all()
      .map(({ detail }) => detail);
  return { asked, recording, planOf };
}

test("every query of signals uses an index and is bounded", async () => {
  const { db } = await start();
  const { asked, recording, planOf } = remembering(db);
  const signals = readerOf(sqliteSql({ reader: recording }));
  const cursor = "01K".padEnd(26, "0");
  for (const filter of [
    everySignal,
    { ...everySignal, symbol: "RARE" },
    { ...everySignal, from: 1, to: 2 },
    { ...everySignal, ids: [cursor], symbol: "RARE" },
    {
      ids: null,
      source: "venue_2",
      type: "crypto",
      symbol: "RARE",
      side: "open",
      direction: "long",
      key_id: cursor,
      from: 1,
      to: 2,
    },
  ]) {
    for (const more of [{}, { before: cursor }, { after: cursor }]) {
      for (const deskId of [1, null]) {
        await signals.list({ deskId, filter, order: "newest", limit: 50, ...more });
        await signals.list({ deskId, filter, order: "oldest", limit: 50, ...more });
      }
    }
  }
  await signals.find(1, cursor);
  await signals.find(1, "x");
  await signals.symbols(1, 200);
  await signals.progress({ deskId: 1, filter: everySignal, order: "oldest", limit: 1 }, cursor);
  expect(new Set(asked).size).toBeGreaterThan(8);
  for (const sql of new Set(asked)) {
    // What is counted off by LIMIT, and the rows that a search found.
    const unwanted = sql.includes("signals.id IN")
      ? /SCAN (?!json_each)/
      : /SCAN (?!json_each|looked_at|latest|\(subquery)|TEMP B-TREE FOR ORDER/;
    expect([sql, planOf(sql).filter((detail) => unwanted.test(detail))]).toEqual([sql, []]);
    expect(sql).not.toMatch(/count\s*\((?![^]*LIMIT)/i);
    // There is a block for each 4,096 signals.
    expect(sql).toMatch(
      /LIMIT|client_signal_id = |signals\.id = |signals\.seq IN |FROM signal_blocks/,
    );
  }
});

test("a search for what few signals have answers in one step, among more than it may read", async () => {
  const { db, registry } = await start();
  const { keyId } = await mintKey(registry, "alpha");
  const other = await mintKey(registry, "alpha");
  const count = 6 * ROWS_LOOKED_AT_MAX;
  db.query(
    `WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < ?1)
     INSERT INTO signals (seq, id, desk_id, key_id, received_at, source, type, symbol, side, hash)
     SELECT n, printf('01HF7%021d', n), 1, iif(n = 77000, ?3, ?2), n, iif(n = 9, 'venue_3', 'venue_1'), 'crypto',
       CASE n WHEN 5 THEN 'Rare"\\Ü' WHEN 70000 THEN 'rare"\\ü' ELSE 'BTC' || (n % 9) END, 'open', ${NO_HASH} FROM numbers`,
  ).run(count, keyId, other.keyId);
  hashSignals(db);
  const writer = new BlockWriter(db);
  writer.add([], 12_000);
  writer.add([], count);
  const signals = readerOf(sqliteSql({ reader: db }));
  for (const [filter, found] of [
    [{ symbol: 'ARE"\\Ü' }, [70_000, 5]],
    [{ key_id: other.keyId }, [77_000]],
    [{ source: "venue_3" }, [9]],
    [{ source: "venue_3", symbol: "btc0" }, [9]],
    [{ source: "venue_3", from: 10 }, []],
    [{ side: "close" }, []],
    [{ symbol: "open" }, []],
  ] as const) {
    for (const deskId of [1, null]) {
      for (const order of ["newest", "oldest"] as const) {
        const wanted = { deskId, filter: { ...everySignal, ...filter }, order, limit: 50 };
        const { signals: list, more, searchedTo } = await signals.list(wanted);
        const times = list.map(({ received_at }) => received_at);
        const wantedTimes = order === "newest" ? [...found] : found.toReversed();
        expect([filter, times, more, searchedTo]).toEqual([filter, wantedTimes, null, null]);
      }
    }
  }
});

test("a filtered page of the audit finds each action's latest entries with an index", async () => {
  const { db } = await start();
  const { asked, recording, planOf } = remembering(db);
  const audit = recordsIn(recording).audit;
  for (const filter of [
    { about: "members" },
    { about: "keys", by: "nobody@example.com" },
    { by: "nobody@example.com" },
    { by: BY_ADMIN, about: "sign-ins" },
  ] as const) {
    await audit.list({ desk: "alpha", limit: 51, ...filter });
  }
  const pages = new Set(asked.filter((sql) => sql.includes("FROM audit")));
  expect(pages.size).toBe(4);
  for (const sql of pages) {
    const details = planOf(sql);
    expect(details).toContainEqual(
      expect.stringMatching(/^SEARCH one USING COVERING INDEX audit_\w+ \(.*rowid<\?\)/),
    );
    // The members are few.
    expect(details.filter((detail) => /SCAN (?!wanted|json_each|actor)/.test(detail))).toEqual([]);
  }
});

test("every query of keys uses an index, however many keys have ended", async () => {
  const { db, registry } = await start();
  await mintKey(registry, "alpha");
  const { asked, recording, planOf } = remembering(db);
  const beside = recordsIn(recording).registry;
  await beside.pageKeys({ desk: "alpha", state: "ended", limit: 10 });
  await beside.pageKeys({ desk: "alpha", state: "active", limit: 10 });
  await beside.expiringKeys("alpha", Date.now());
  const [key] = await registry.listKeys("alpha");
  if (key === undefined) throw new Error("no key");
  await beside.hasNamesake({ ...key, label: "x" });
  await mintKey(beside, "alpha");
  const lists = recordsIn(recording).audit;
  await lists.list({ desk: "alpha", key: key.id, limit: 10 });
  await lists.creatorsOf("alpha", [key.id]);
  const keyQueries = asked.filter((sql) => /^SELECT.*FROM (api_keys|audit|json_each)/s.test(sql));
  expect(keyQueries.length).toBeGreaterThanOrEqual(6);
  for (const sql of keyQueries) {
    // Sorted are the active keys alone.
    const unwanted = sql.includes("api_keys_active")
      ? /SCAN (?!wanted)/
      : /SCAN (?!wanted)|TEMP B-TREE/;
    expect([sql, planOf(sql).filter((detail) => unwanted.test(detail))]).toEqual([sql, []]);
  }
});

/** The index behind exactly once, held to a model over a long life in small steps. */
import type { Database } from "bun:sqlite";
import { describe, expect, setDefaultTimeout, test } from "bun:test";
import { join } from "node:path";
import * as fc from "fast-check";
import { copyDatabase } from "../src/store/sqlite/copy.ts";
import { Filter } from "../src/store/sqlite/dedupe/filter.ts";
import { nameOf } from "../src/store/sqlite/dedupe/hash.ts";
import { DedupeIndex, type DedupeLimits } from "../src/store/sqlite/dedupe/index.ts";
import { Merge, planOf, writeRun } from "../src/store/sqlite/dedupe/merge.ts";
import { RunParts } from "../src/store/sqlite/dedupe/parts.ts";
import { findSeq } from "../src/store/sqlite/dedupe/read.ts";
import { BLOCK_ENTRIES, Run } from "../src/store/sqlite/dedupe/run.ts";
import { insertRun } from "../src/store/sqlite/dedupe/runs.ts";
import { dedupeProblems } from "../src/store/sqlite/dedupe/verify.ts";
import { DamagedIndexError } from "../src/store/sqlite/failures.ts";
import { DATABASE_NAME } from "../src/store/sqlite/folder.ts";
import { openDatabase } from "../src/store/sqlite/open.ts";
import { formerSchema } from "./_databases.ts";
import { onCleanup, temporaryFolder } from "./_setup.ts";

setDefaultTimeout(120_000);

const tables = ["dedupe_runs", "dedupe_blocks", "dedupe_filters"];

const small: DedupeLimits = { recentMax: 7, uncoveredMax: 20, fanOut: 3, mergedAPart: 5 };

interface Stored {
  readonly db: Database;
  readonly insert: (deskId: number, id: string | null) => number;
}

/** A database with desks 1 and 2. */
function openStored(): Stored {
  const db = openDatabase(temporaryFolder(), "writer");
  onCleanup(() => db.close());
  // Thousands of commits, and no power to lose.
  db.run("PRAGMA synchronous = OFF");
  return storedIn(db);
}

function storedIn(db: Database): Stored {
  const keyId = "01HF7000000000000000000000";
  // Not by the registry, which knows the newest schema alone.
  db.run("INSERT INTO desks (id, name, created_at) VALUES (1, 'one', 0), (2, 'two', 0)");
  db.query(
    "INSERT INTO api_keys (id, desk_id, key_hash, last4, created_at) VALUES (?, 1, zeroblob(32), '0000', 0)",
  ).run(keyId);
  let inserted = 0;
  const insert = db.query(
    `INSERT INTO signals (id, desk_id, key_id, received_at, client_signal_id, source, type, symbol, side)
     VALUES (?, ?, ?, 0, ?, 'venue_1', 'stock', 'X', 'open')`,
  );
  return {
    db,
    insert: (deskId, id) => {
      inserted += 1;
      const ulid = String(inserted).padStart(26, "0");
      return Number(insert.run(ulid, deskId, keyId, id).lastInsertRowid);
    },
  };
}

/** As the writer looks an id up. */
function find({ db }: Stored, index: DedupeIndex, deskId: number, id: string): number[] {
  const is = db.query(
    "SELECT 1 FROM signals WHERE seq = ? AND desk_id = ? AND client_signal_id = ?",
  );
  const { hash } = index.keyOf(deskId, id);
  return index.candidates(hash).filter((seq) => is.get(seq, deskId, id) !== null);
}

function count(db: Database, table: string): number {
  return db.query<{ n: number }, []>(`SELECT count(*) AS n FROM ${table}`).get()?.n ?? 0;
}

/** What is there of filters: the run and number of each part. */
function filterParts(db: Database): unknown[] {
  return db
    .query("SELECT id >> 24 AS run, id & 0xffffff AS part FROM dedupe_filters ORDER BY id")
    .all();
}

/** What should be. */
function filterPartsOfRuns(db: Database): unknown[] {
  return db
    .query<{ id: number; entries: number }, []>("SELECT id, entries FROM dedupe_runs ORDER BY id")
    .all()
    .flatMap(({ id, entries }) =>
      Array.from({ length: new Filter(entries).parts }, (_, part) => ({ run: id, part })),
    );
}

/** All the work that is due. */
function settle(index: DedupeIndex): void {
  for (let parts = 0; index.isWorkDue; parts += 1) {
    if (parts > 100_000) throw new Error("the work has no end");
    index.work();
  }
}

describe("the index", () => {
  const step = fc.oneof(
    {
      weight: 6,
      arbitrary: fc.record({
        kind: fc.constant("store"),
        ids: fc.array(fc.nat(60), { maxLength: 9 }),
        desk: fc.constantFrom(1, 2),
      }),
    },
    {
      weight: 2,
      arbitrary: fc.record({ kind: fc.constant("store without ids"), count: fc.nat(8) }),
    },
    { weight: 6, arbitrary: fc.record({ kind: fc.constant("work"), parts: fc.nat(6) }) },
    { weight: 1, arbitrary: fc.record({ kind: fc.constant("start anew") }) },
  );

  test("knows every id that was stored, and no other, whatever comes in between", () => {
    fc.assert(
      fc.property(fc.array(step, { maxLength: 80 }), (steps) => {
        const stored = openStored();
        const model = new Map<string, number>();
        let index = new DedupeIndex(stored.db, small);
        const put = (deskId: number, id: string | null): void => {
          const key = id === null ? null : index.keyOf(deskId, id);
          if (id !== null && find(stored, index, deskId, id).length > 0) return;
          const seq = stored.insert(deskId, id);
          index.add(seq, key);
          if (id !== null) {
            // A second one would be a signal that is stored twice.
            expect(model.has(nameOf(deskId, id))).toBe(false);
            model.set(nameOf(deskId, id), seq);
          }
        };
        for (const each of steps) {
          if ("ids" in each) for (const id of each.ids) put(each.desk, `id-${id}`);
          else if ("count" in each) for (let n = 0; n < each.count; n += 1) put(1, null);
          else if ("parts" in each)
            for (let n = 0; n < each.parts && index.isWorkDue; n += 1) index.work();
          else index = new DedupeIndex(stored.db, small);
          for (const deskId of [1, 2]) {
            for (let id = 0; id <= 60; id += 1) {
              const expected = model.get(nameOf(deskId, `id-${id}`));
              const found = find(stored, index, deskId, `id-${id}`);
              expect(found).toEqual(expected === undefined ? [] : [expected]);
            }
          }
          for (const [name, seq] of [...model].slice(-3)) {
            const [desk = "", id = ""] = name.split(":");
            expect(findSeq(stored.db, Number(desk), id)).toBe(seq);
          }
          expect(findSeq(stored.db, 2, "never")).toBeNull();
          expect(dedupeProblems(stored.db, 5)).toEqual([]);
        }
        settle(index);
        expect(filterParts(stored.db)).toEqual(filterPartsOfRuns(stored.db));
      }),
      { numRuns: 60 },
    );
  });

  test("comes to few runs, without a block or filter that nobody uses", () => {
    const stored = openStored();
    const index = new DedupeIndex(stored.db, small);
    for (let n = 0; n < 3_000; n += 1) {
      index.add(stored.insert(1, `id-${n}`), index.keyOf(1, `id-${n}`));
      if (index.isWorkDue) index.work();
    }
    settle(index);
    expect(count(stored.db, "dedupe_runs")).toBeLessThan(20);
    expect(
      stored.db.query("SELECT sum((entries + 499) / 500) AS n FROM dedupe_runs").get(),
    ).toEqual({ n: count(stored.db, "dedupe_blocks") });
    // Of one part each.
    expect(count(stored.db, "dedupe_filters")).toBeLessThan(100);
    expect(filterParts(stored.db)).toEqual(filterPartsOfRuns(stored.db));
    expect(dedupeProblems(stored.db, 5)).toEqual([]);
  });

  test("is made from the signals where there is nothing of it, and is the same then", () => {
    const stored = openStored();
    for (let n = 0; n < 1_000; n += 1) stored.insert(1 + (n % 2), n % 10 === 0 ? null : `id-${n}`);
    const index = new DedupeIndex(stored.db, small);
    expect(find(stored, index, 1, "id-2")).toEqual([3]);
    expect(find(stored, index, 2, "id-2")).toEqual([]);
    settle(index);
    stored.db.run("DELETE FROM dedupe_runs");
    const again = new DedupeIndex(stored.db, small);
    again.complete();
    expect(find(stored, again, 2, "id-999")).toEqual([1_000]);
    expect(filterParts(stored.db)).toEqual(filterPartsOfRuns(stored.db));
    expect(dedupeProblems(stored.db, 5)).toEqual([]);
    expect(stored.db.query("SELECT max(last_seq) AS seq FROM dedupe_runs").get()).toEqual({
      seq: 1_000,
    });
  });

  test("merges at a start only after a long absence, and then leaves nothing to remove", () => {
    const stored = openStored();
    const limits = { ...small, fanOut: 2 };
    let next = 0;
    const insert = (more: number): void => {
      for (const end = next + more; next < end; next += 1) stored.insert(1, `id-${next}`);
    };
    insert(small.recentMax);
    new DedupeIndex(stored.db, limits).cover();
    insert(small.recentMax);
    const crashed = new DedupeIndex(stored.db, limits);
    expect(count(stored.db, "dedupe_runs")).toBe(2);
    expect(crashed.isWorkDue).toBe(true);
    insert(small.uncoveredMax + 1);
    const away = new DedupeIndex(stored.db, limits);
    expect(away.isWorkDue).toBe(false);
    expect(count(stored.db, "dedupe_blocks")).toBe(count(stored.db, "dedupe_runs"));
    expect(filterParts(stored.db)).toEqual(filterPartsOfRuns(stored.db));
    expect(find(stored, away, 1, `id-${next - 1}`)).toEqual([next]);
    expect(dedupeProblems(stored.db, 5)).toEqual([]);
  });

  test("takes no more than twelve bytes of the disk an id, in parts of one page", () => {
    const stored = openStored();
    const pages = () =>
      (stored.db.query("PRAGMA page_count").get() as { page_count: number }).page_count;
    stored.db.run("BEGIN");
    for (let n = 0; n < 40_000; n += 1) stored.insert(1, `id-${n}`);
    stored.db.run("COMMIT");
    const before = pages();
    new DedupeIndex(stored.db).complete();
    expect(((pages() - before) * 4_096) / 40_000).toBeLessThan(12);
  });

  test("tells ids of one hash apart", () => {
    const stored = openStored();
    // The seed is that of the first run.
    const before = new DedupeIndex(stored.db, small);
    before.add(stored.insert(1, "any"), before.keyOf(1, "any"));
    before.cover();
    const seen = new Map<number, string>();
    const pairs: [string, string][] = [];
    for (let n = 0; pairs.length < 3; n += 1) {
      const value = before.keyOf(1, `id-${n}`).hash;
      const other = seen.get(value);
      if (other !== undefined) pairs.push([other, `id-${n}`]);
      seen.set(value, `id-${n}`);
    }
    for (const limits of [undefined, small]) {
      const index = new DedupeIndex(stored.db, limits);
      for (const [first, second] of pairs) {
        if (limits === undefined) {
          index.add(stored.insert(1, first), index.keyOf(1, first));
          expect(find(stored, index, 1, second)).toEqual([]);
          index.add(stored.insert(1, second), index.keyOf(1, second));
        }
        const [one] = find(stored, index, 1, first);
        const [two] = find(stored, index, 1, second);
        expect(two).toBe((one ?? 0) + 1);
      }
      settle(index);
      index.complete();
      expect(dedupeProblems(stored.db, 5)).toEqual([]);
    }
  });
});

test("what a crash left of runs that are in no use is removed, and no run takes their numbers", () => {
  const { stored } = filled();
  const { blocks, filters } = new RunParts(stored.db);
  blocks.write(1_000, 3, Uint32Array.of(1, 2));
  filters.write(1_001, 0, Uint32Array.of(3));
  const index = new DedupeIndex(stored.db, small);
  for (let n = 0; n < 10; n += 1) {
    index.add(stored.insert(1, `more-${n}`), index.keyOf(1, `more-${n}`));
  }
  settle(index);
  expect(blocks.nextRun(1_000)).toBeGreaterThan(1_001);
  expect(filters.nextRun(1_000)).toBeGreaterThan(1_001);
  expect(filterParts(stored.db)).toEqual(filterPartsOfRuns(stored.db));
  expect(dedupeProblems(stored.db, 5)).toEqual([]);
});

describe("a part of the work that fails", () => {
  test("changes nothing, and is begun again", () => {
    const stored = openStored();
    const index = new DedupeIndex(stored.db, small);
    for (let n = 0; n < 200; n += 1) {
      index.add(stored.insert(1, `id-${n}`), index.keyOf(1, `id-${n}`));
      if (n % 3 === 0 && index.isWorkDue) index.work();
    }
    for (const table of tables) {
      for (const change of ["INSERT", "DELETE"]) {
        stored.db.run(
          `CREATE TRIGGER refuse BEFORE ${change} ON ${table} BEGIN SELECT RAISE(ABORT, 'no'); END`,
        );
        let failures = 0;
        for (let n = 0; n < 100 && index.isWorkDue; n += 1) {
          try {
            index.work();
          } catch {
            failures += 1;
          }
        }
        expect(failures, `${change} on ${table}`).toBeGreaterThan(0);
        expect(find(stored, index, 1, "id-0")).toEqual([1]);
        expect(find(stored, index, 1, "id-199")).toEqual([200]);
        expect(dedupeProblems(stored.db, 5)).toEqual([]);
        stored.db.run("DROP TRIGGER refuse");
        for (let n = 0; n < 30; n += 1) {
          const id = `${table}-${change}-${n}`;
          index.add(stored.insert(1, id), index.keyOf(1, id));
        }
      }
    }
    settle(index);
    expect(count(stored.db, "dedupe_blocks")).toBe(count(stored.db, "dedupe_runs"));
    expect(filterParts(stored.db)).toEqual(filterPartsOfRuns(stored.db));
    expect(dedupeProblems(stored.db, 5)).toEqual([]);
  });
});

/** A hundred signals, in two runs: a large one, and one for what came after it. */
function filled(): { stored: Stored; index: DedupeIndex } {
  const stored = openStored();
  const index = new DedupeIndex(stored.db, small);
  for (let n = 0; n < 100; n += 1) {
    index.add(stored.insert(1, `id-${n}`), index.keyOf(1, `id-${n}`));
    if (n === 80) index.complete();
  }
  index.complete();
  expect(count(stored.db, "dedupe_runs")).toBeGreaterThan(1);
  expect(dedupeProblems(stored.db, 5)).toEqual([]);
  return { stored, index };
}

/** Two runs of several parts each. */
function filledWide(): { stored: Stored; index: DedupeIndex } {
  const stored = openStored();
  const index = new DedupeIndex(stored.db);
  stored.db.run("BEGIN");
  const keys = Array.from({ length: 12_000 }, (_, n) => index.keyOf(1, `id-${n}`));
  const seqs = keys.map(({ clientSignalId }) => stored.insert(1, clientSignalId));
  stored.db.run("COMMIT");
  for (const [n, key] of keys.entries()) {
    index.add(seqs[n] ?? 0, key);
    if (n === 5_999 || n === 11_999) index.cover();
  }
  expect(count(stored.db, "dedupe_runs")).toBe(2);
  expect(count(stored.db, "dedupe_filters")).toBeGreaterThan(4);
  expect(dedupeProblems(stored.db, 5)).toEqual([]);
  return { stored, index };
}

function putOther(table: string, other: string): string {
  return `UPDATE ${table} SET words = (SELECT words FROM ${table} WHERE id = ${other}) WHERE id = 1 << 24`;
}

describe("damage", () => {
  /** Of the first part of the first run, in one table. */
  const damages: [name: string, sql: (table: string) => string][] = [
    [
      "a bit",
      (table) =>
        `UPDATE ${table} SET words = CAST(substr(words, 1, 9)
           || CASE substr(words, 10, 1) WHEN x'ff' THEN x'fe' ELSE x'ff' END
           || substr(words, 11) AS BLOB) WHERE id = 1 << 24`,
    ],
    ["the end", (table) => `UPDATE ${table} SET words = substr(words, 1, 12) WHERE id = 1 << 24`],
    ["a word", (table) => `UPDATE ${table} SET words = substr(words, 5) WHERE id = 1 << 24`],
    ["some bytes", (table) => `UPDATE ${table} SET words = substr(words, 4) WHERE id = 1 << 24`],
    ["all of it", (table) => `UPDATE ${table} SET words = x'' WHERE id = 1 << 24`],
    ["its row", (table) => `DELETE FROM ${table} WHERE id = 1 << 24`],
    ["its place: it is another part's", (table) => putOther(table, "(1 << 24) + 1")],
    ["its run: it is another run's", (table) => putOther(table, "2 << 24")],
  ];

  test.each(damages)("of a block, in %s, is never taken for an answer", (_, sql) => {
    const { stored, index } = filledWide();
    stored.db.run(sql("dedupe_blocks"));
    const lowest = Array.from({ length: 1_000 }, (__, n) => index.keyOf(1, `id-${n}`).hash)
      .toSorted((a, b) => a - b)
      .at(0);
    expect(() => index.candidates(lowest as number)).toThrow(DamagedIndexError);
    expect(() => dedupeProblems(stored.db, 5)).toThrow(/damaged: block 0 of run 1 is not/);
  });

  test.each(damages)("of a filter, in %s, is seen at the start", (_, sql) => {
    const { stored } = filledWide();
    stored.db.run(sql("dedupe_filters"));
    const named = /damaged: filter part 0 of run 1 is not as it was written/;
    expect(() => new DedupeIndex(stored.db, small)).toThrow(DamagedIndexError);
    expect(() => new DedupeIndex(stored.db, small)).toThrow(named);
    expect(() => dedupeProblems(stored.db, 5)).toThrow(named);
  });

  test("of a filter is seen in every one of its bits", () => {
    const { stored } = filled();
    const { db } = stored;
    const { words } = db
      .query<{ words: Uint8Array }, []>("SELECT words FROM dedupe_filters ORDER BY id LIMIT 1")
      .get() ?? { words: new Uint8Array() };
    const put = db.query(
      "UPDATE dedupe_filters SET words = ? WHERE id = (SELECT min(id) FROM dedupe_filters)",
    );
    for (let bit = 0; bit < words.length * 8; bit += 1) {
      const other = words.slice();
      other[bit >> 3] = (other[bit >> 3] as number) ^ (1 << (bit & 7));
      put.run(other);
      expect(() => new DedupeIndex(db, small)).toThrow(DamagedIndexError);
    }
    put.run(words);
    expect(new DedupeIndex(db, small).isWorkDue).toBe(false);
  });

  test("of a filter with a part of another length is seen, even where its checksum is right", () => {
    const { stored } = filledWide();
    const { filters } = new RunParts(stored.db);
    const last = filters.read(1, 2).slice();
    stored.db.run("DELETE FROM dedupe_filters WHERE id = (1 << 24) + 2");
    filters.write(1, 2, last.subarray(0, -16));
    expect(() => new DedupeIndex(stored.db, small)).toThrow(/filter part 2 of run 1 is not/);
  });

  test("of a filter that was written without one of its entries is found by a look at everything", () => {
    const { stored } = filledWide();
    const { filters } = new RunParts(stored.db);
    const part = filters.read(2, 1).slice();
    filters.removeSome(2, 1_000);
    const { entries } = stored.db
      .query<{ entries: number }, []>("SELECT entries FROM dedupe_runs WHERE id = 2")
      .get() ?? { entries: 0 };
    const empty = new Filter(entries);
    for (let at = 0; at < empty.parts; at += 1)
      filters.write(2, at, at === 1 ? part : empty.part(at));
    expect(dedupeProblems(stored.db, 5)).toEqual([
      "the filter of run 2 does not have all of its entries",
    ]);
  });

  test.each([
    ["a run that is missing", "DELETE FROM dedupe_runs WHERE first_seq = 1"],
    ["runs with a gap", "UPDATE dedupe_runs SET first_seq = first_seq + 1 WHERE first_seq > 1"],
    ["runs behind the last signal", "DELETE FROM signals WHERE seq > 90"],
    ["another seed", "UPDATE dedupe_runs SET seed = '0123456789abcdef'"],
    ["fences of another run", "UPDATE dedupe_runs SET fences = zeroblob(4)"],
  ])("of %s is seen at the start", (_, sql) => {
    const { stored } = filled();
    stored.insert(1, "one more");
    stored.db.run(sql);
    expect(() => new DedupeIndex(stored.db, small)).toThrow(DamagedIndexError);
  });

  test.each([
    [
      "a signal that the index does not have",
      "UPDATE signals SET client_signal_id = 'another' WHERE seq = 7",
      /does not have the entries/,
    ],
    [
      "a signal that is there twice",
      "UPDATE signals SET client_signal_id = 'id-5' WHERE seq > 100",
      /seq 6 and seq 101 have the same id/,
    ],
    [
      "a run behind the last signal",
      "DELETE FROM signals WHERE seq > 90",
      /ends behind the last signal/,
    ],
  ])("of %s is found by a look at everything", (_, sql, problem) => {
    const { stored } = filled();
    stored.insert(1, "one more");
    stored.db.run(sql);
    expect(dedupeProblems(stored.db, 5).join("; ")).toMatch(problem);
  });
});

/** As that version left it: a run of all ten signals, and its block. */
function openVersion3(dataDir: string): Database {
  const db = openDatabase(dataDir, "command", { schema: formerSchema(3) });
  const { insert } = storedIn(db);
  for (let n = 0; n < 10; n += 1) insert(1, `id-${n}`);
  const plan = { id: 1, level: 0, firstSeq: 1, lastSeq: 10, entries: 10, seed: "0123456789abcdef" };
  insertRun(db, new Run(plan, Uint32Array.of(77), null));
  db.run("INSERT INTO dedupe_blocks (id, entries) VALUES (1 << 24, zeroblob(84))");
  return db;
}

describe("the index of a database of version 3", () => {
  test("is made anew after the upgrade", () => {
    const dataDir = temporaryFolder();
    openVersion3(dataDir).close();
    const db = openDatabase(dataDir, "writer");
    onCleanup(() => db.close());
    for (const table of tables) expect(count(db, table)).toBe(0);
    const index = new DedupeIndex(db);
    expect(index.candidates(index.keyOf(1, "id-9").hash)).toEqual([10]);
    index.complete();
    expect(dedupeProblems(db, 5)).toEqual([]);
    expect(count(db, "dedupe_runs")).toBe(1);
  });

  test("is left out of a backup, which is one of version 3", () => {
    const dataDir = temporaryFolder();
    openVersion3(dataDir).close();
    const restored = temporaryFolder();
    const file = join(restored, DATABASE_NAME);
    expect(copyDatabase(join(dataDir, DATABASE_NAME), file)).toMatchObject({
      ok: true,
      version: 3,
      signals: 10,
    });
    const db = openDatabase(restored, "writer");
    onCleanup(() => db.close());
    const index = new DedupeIndex(db);
    expect(index.candidates(index.keyOf(1, "id-9").hash)).toEqual([10]);
  });
});

function randomHash(): number {
  return Math.floor(Math.random() * 2 ** 32);
}

describe("a run", () => {
  test("finds every entry of a hash, over all blocks that have it, and none of another", () => {
    const { db } = openStored();
    const parts = new RunParts(db);
    const hashes = [0, 5, ...Array.from({ length: 1_800 }, () => 77), 78, 2 ** 32 - 1, 2 ** 32 - 1];
    const entries = new Uint32Array(hashes.flatMap((hash, place) => [place, hash]));
    const plan = {
      id: 9,
      level: 0,
      firstSeq: 1_000,
      lastSeq: 9_000,
      entries: hashes.length,
      seed: "",
    };
    const run = writeRun(parts, plan, entries);
    for (const filter of [run.filter, Filter.read(parts.filters, run), null]) {
      run.filter = filter;
      for (const hash of [0, 4, 5, 76, 77, 78, 79, 2 ** 32 - 1]) {
        const found: number[] = [];
        run.find(parts.blocks, hash, found);
        const expected = hashes.flatMap((each, place) => (each === hash ? [1_000 + place] : []));
        expect(found).toEqual(expected);
      }
    }
    expect(run.fences).toHaveLength(Math.ceil(hashes.length / BLOCK_ENTRIES));
  });

  test("has the same filter on disk as in memory, written at once or merged in small parts", () => {
    const { db } = openStored();
    const parts = new RunParts(db);
    const expectSame = (run: Run): void => {
      const read = Filter.read(parts.filters, run);
      expect(read.parts).toBeGreaterThan(3);
      for (let part = 0; part < read.parts; part += 1)
        expect(read.part(part)).toEqual(run.filter?.part(part) as Uint32Array);
    };
    // Anywhere; in the first half, so that all that is behind is empty; nearly all of them one.
    const kinds = [randomHash, () => randomHash() >>> 1, (n: number) => (n === 0 ? 7 : 2 ** 31)];
    const runs = kinds.map((hashOf, at) => {
      const hashes = Array.from({ length: 12_000 }, (_, n) => hashOf(n)).toSorted((a, b) => a - b);
      const entries = new Uint32Array(hashes.flatMap((hash, place) => [place, hash]));
      const [firstSeq, lastSeq] = [1 + at * 12_000, (at + 1) * 12_000];
      const plan = { id: at, level: 0, firstSeq, lastSeq, entries: hashes.length, seed: "" };
      return writeRun(parts, plan, entries);
    });
    for (const run of runs) expectSame(run);
    const merge = new Merge(parts, runs, planOf(9, runs));
    let merged = merge.mergeSome(777);
    for (; merged === null; merged = merge.mergeSome(777));
    expectSame(merged);
  });

  test("is looked into for few of the hashes that it does not have, and for all that it has", () => {
    const filter = new Filter(20_000);
    const known = Array.from({ length: 20_000 }, randomHash);
    for (const hash of known) filter.add(hash);
    expect(known.every((hash) => filter.mayHave(hash))).toBe(true);
    const others = Array.from({ length: 20_000 }, randomHash).filter((hash) =>
      filter.mayHave(hash),
    );
    expect(others.length / 20_000).toBeLessThan(0.02);
  });
});

import { Database } from "bun:sqlite";
import { copyFileSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "bun:test";
import * as fc from "fast-check";
import { copyDatabase } from "../../src/store/sqlite/copies/copy.ts";
import { findDamagedFrame } from "../../src/store/sqlite/log/log-damage.ts";
import { openDatabase } from "../../src/store/sqlite/files/open.ts";
import { verifyDatabase } from "../../src/store/sqlite/copies/verify.ts";
import { seed } from "./_databases.ts";
import { temporaryFolder } from "../kit/setup.ts";

const FRAME_BYTES = 24 + 4_096;
const TRANSACTIONS = 8;

/** Makes a log like that of a killed process. `ends`: the last frame of each transaction. */
function writeLog(): { path: string; ends: number[] } {
  const folder = temporaryFolder();
  const path = join(folder, "killed-wal");
  const db = new Database(join(folder, "live"));
  db.run("PRAGMA journal_mode = WAL");
  db.run("CREATE TABLE t (a INTEGER PRIMARY KEY, b)");
  const ends: number[] = [];
  for (let count = 0; count < TRANSACTIONS; count += 1) {
    db.query("INSERT INTO t (b) VALUES (?)").run("x".repeat(3_000 * (count % 3) + 10));
    copyFileSync(join(folder, "live-wal"), path);
    ends.push((readFileSync(path).length - 32) / FRAME_BYTES);
  }
  db.close();
  return { path, ends };
}

function flip(path: string, offset: number, bit: number): void {
  const bytes = readFileSync(path);
  bytes[offset] = (bytes[offset] ?? 0) ^ (1 << bit);
  writeFileSync(path, bytes);
}

/** Returns how many rows SQLite itself recovers from the log. */
function recoveredRows(path: string): number {
  const folder = temporaryFolder();
  const copy = join(folder, "copy");
  const empty = new Database(copy);
  empty.run("PRAGMA journal_mode = WAL");
  empty.close();
  copyFileSync(path, `${copy}-wal`);
  const db = new Database(copy);
  try {
    return db.query<{ n: number }, []>("SELECT count(*) AS n FROM t").get()?.n ?? 0;
  } catch {
    return 0;
  } finally {
    db.close();
  }
}

describe("no damage is found in a log", () => {
  test("that a killed process has left, or that is missing, empty or filled with zeros", () => {
    expect(findDamagedFrame(writeLog().path)).toBeNull();
    const path = join(temporaryFolder(), "none-wal");
    expect(findDamagedFrame(path)).toBeNull();
    for (const size of [0, 31, 32, 4_096, 100_000]) {
      writeFileSync(path, Buffer.alloc(size));
      expect(findDamagedFrame(path)).toBeNull();
    }
  });

  test("that a power cut has left: cut anywhere, or with sectors of the last transaction missing", () => {
    const { path, ends } = writeLog();
    const whole = readFileSync(path);
    const lastStart = 32 + (ends.at(-2) ?? 0) * FRAME_BYTES;
    const sector = fc.nat(Math.floor((whole.length - lastStart) / 512));
    fc.assert(
      fc.property(
        fc.integer({ min: 0, max: whole.length }),
        fc.array(sector, { maxLength: 9 }),
        (length, sectors) => {
          const bytes = Buffer.from(whole);
          for (const lost of sectors) {
            const from = lastStart + lost * 512;
            bytes.fill(0, from, Math.min(bytes.length, from + 512));
          }
          writeFileSync(path, sectors.length > 0 ? bytes : bytes.subarray(0, length));
          expect(findDamagedFrame(path)).toBeNull();
        },
      ),
      { numRuns: 100 },
    );
  });

  test.each([0, 3])(
    "whose last transaction has a sector of an older log, of %i pages per commit",
    (pages) => {
      const { older, newer, path } = writeLogOverOlder(pages);
      writeFileSync(path, newer);
      expect(findDamagedFrame(path)).toBeNull();
      const found: number[] = [];
      // The step and a frame have no common factor, so every place in a frame is tried.
      for (
        let at = 512 * Math.ceil((FRAME_BYTES * 3) / 512);
        at < FRAME_BYTES * 72;
        at += 5 * 512
      ) {
        const torn = Buffer.from(newer);
        older.copy(torn, at, at, at + 512);
        writeFileSync(path, torn);
        if (findDamagedFrame(path) !== null) found.push(at);
      }
      expect(found).toEqual([]);
    },
  );
});

/** Writes a log of two transactions over an older log of 100 transactions with `pages` pages each. */
function writeLogOverOlder(pages: number): { older: Buffer; newer: Buffer; path: string } {
  const folder = temporaryFolder();
  const path = join(folder, "live-wal");
  const db = new Database(join(folder, "live"));
  db.run("PRAGMA journal_mode = WAL");
  db.run("CREATE TABLE t (a)");
  const insert = db.query("INSERT INTO t VALUES (zeroblob(?))");
  for (let count = 0; count < 100; count += 1) insert.run(4_096 * pages);
  const older = readFileSync(path);
  db.run("PRAGMA wal_checkpoint(PASSIVE)");
  insert.run(1);
  insert.run(4_096 * 70);
  const newer = readFileSync(path);
  db.close();
  return { older, newer, path };
}

describe("damage is found", () => {
  test("wherever a bit is flipped before the last two transactions, where SQLite alone loses rows", () => {
    const { path, ends } = writeLog();
    const whole = readFileSync(path);
    const end = 32 + (ends.at(-3) ?? 0) * FRAME_BYTES;
    let silentLosses = 0;
    fc.assert(
      fc.property(fc.integer({ min: 0, max: end - 1 }), fc.nat(7), (offset, bit) => {
        writeFileSync(path, whole);
        flip(path, offset, bit);
        expect(findDamagedFrame(path)).not.toBeNull();
        if (recoveredRows(path) < TRANSACTIONS) silentLosses += 1;
      }),
      {
        numRuns: 100,
        examples: Array.from({ length: 56 }, (_, at) => [at, at % 8] as [number, number]),
      },
    );
    expect(silentLosses).toBeGreaterThan(50);
  });

  test.each([
    [512, 0],
    [4_096, 0xa5],
  ])("in the header, with %i bytes that are %i", (size, byte) => {
    const { path } = writeLog();
    writeFileSync(path, readFileSync(path).fill(byte, 0, size));
    expect(findDamagedFrame(path)).toBe(0);
    expect(recoveredRows(path)).toBe(0);
  });
});

test("the start of a server, verify and backup refuse a damaged log, and leave it unchanged", async () => {
  const { dataDir, path } = await seed({ signals: 5, logged: 20 });
  const log = `${path}-wal`;
  flip(log, 32 + 2 * FRAME_BYTES + 100, 3);
  const before = readFileSync(log);
  const says = `${log} is damaged (frame 3), and acknowledged signals come after that place`;
  expect(() => openDatabase(dataDir, "reader")).toThrow(says);
  expect(() => verifyDatabase(path)).toThrow(says);
  expect(() => copyDatabase(path, join(temporaryFolder(), "b.db"))).toThrow(says);
  expect(readFileSync(log).equals(before)).toBe(true);
});

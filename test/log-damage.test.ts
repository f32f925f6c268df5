import { Database } from "bun:sqlite";
import { copyFileSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, setDefaultTimeout, test } from "bun:test";
import * as fc from "fast-check";
import { findLogDamage } from "../src/store/sqlite/log-damage.ts";
import { temporaryFolder } from "./_setup.ts";

// Hundreds of runs on a machine that may be busy.
setDefaultTimeout(60_000);

const FRAME_BYTES = 24 + 4_096;
const TRANSACTIONS = 8;

/** A log of several transactions, as a process that was killed leaves it, and where each one ends. */
function writeLog(): { path: string; frames: number; ends: number[] } {
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
  return { path, frames: ends.at(-1) ?? 0, ends };
}

function flip(path: string, offset: number, bit: number): void {
  const bytes = readFileSync(path);
  bytes[offset] = (bytes[offset] ?? 0) ^ (1 << bit);
  writeFileSync(path, bytes);
}

/** What SQLite itself makes of the log: the rows that it recovers. */
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

describe("a sound log", () => {
  test("as a kill leaves it", () => {
    expect(findLogDamage(writeLog().path)).toBeNull();
  });

  test("none, an empty one, or room for one", () => {
    const path = join(temporaryFolder(), "none-wal");
    expect(findLogDamage(path)).toBeNull();
    for (const size of [0, 31, 32, 4_096, 100_000]) {
      writeFileSync(path, Buffer.alloc(size));
      expect(findLogDamage(path)).toBeNull();
    }
  });

  test("started again over the frames of an older one", () => {
    const folder = temporaryFolder();
    const db = new Database(join(folder, "live"));
    db.run("PRAGMA journal_mode = WAL");
    db.run("CREATE TABLE t (a)");
    for (let count = 0; count < 50; count += 1) db.run("INSERT INTO t VALUES (zeroblob(3000))");
    db.run("PRAGMA wal_checkpoint(PASSIVE)");
    db.run("INSERT INTO t VALUES (1)");
    expect(readFileSync(join(folder, "live-wal")).length).toBeGreaterThan(32 + 40 * FRAME_BYTES);
    expect(findLogDamage(join(folder, "live-wal"))).toBeNull();
    db.close();
  });

  test("as a power cut leaves it: cut anywhere, and any part of the last transaction not written", () => {
    const { path, frames, ends } = writeLog();
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
          expect(findLogDamage(path)).toBeNull();
        },
      ),
      { numRuns: 100 },
    );
    expect(frames).toBeGreaterThan(TRANSACTIONS);
  });
});

/** A log of few transactions over the frames of an older one, of many with this many pages each. */
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

test.each([0, 1, 2, 3])(
  "a sound log, where one sector of its last transaction is an older log's, of %i pages a commit",
  (pages) => {
    const { older, newer, path } = writeLogOverOlder(pages);
    const found: number[] = [];
    for (let at = 512 * Math.ceil((FRAME_BYTES * 3) / 512); at < FRAME_BYTES * 72; at += 512) {
      const torn = Buffer.from(newer);
      older.copy(torn, at, at, at + 512);
      writeFileSync(path, torn);
      if (findLogDamage(path) !== null) found.push(at);
    }
    expect(found).toEqual([]);
  },
);

describe("damage", () => {
  test("of one bit in all but the last transaction is found, wherever it is; SQLite alone loses rows by it", () => {
    const { path, ends } = writeLog();
    const whole = readFileSync(path);
    // The last commit that is followed by a frame is the last one but one.
    const end = 32 + (ends.at(-2) ?? 0) * FRAME_BYTES;
    let lossesInSilence = 0;
    fc.assert(
      fc.property(fc.integer({ min: 0, max: end - 1 }), fc.nat(7), (offset, bit) => {
        writeFileSync(path, whole);
        flip(path, offset, bit);
        expect(findLogDamage(path)).not.toBeNull();
        if (recoveredRows(path) < TRANSACTIONS) lossesInSilence += 1;
      }),
      {
        numRuns: 100,
        examples: Array.from({ length: 56 }, (_, at) => [at, at % 8] as [number, number]),
      },
    );
    expect(lossesInSilence).toBeGreaterThan(50);
  });

  test("says which frame", () => {
    const { path } = writeLog();
    flip(path, 32 + 2 * FRAME_BYTES + 100, 3);
    expect(findLogDamage(path)).toEqual({ frame: 3 });
    const other = writeLog();
    flip(other.path, 17, 0);
    expect(findLogDamage(other.path)).toEqual({ frame: 0 });
  });

  test("in the header, with the rest of its sector or page", () => {
    for (const [size, byte] of [
      [512, 0],
      [4_096, 0],
      [4_096, 0xa5],
    ] as const) {
      const { path } = writeLog();
      const bytes = readFileSync(path);
      bytes.fill(byte, 0, size);
      writeFileSync(path, bytes);
      expect(findLogDamage(path)).toEqual({ frame: 0 });
      expect(recoveredRows(path)).toBe(0);
    }
  });

  test("in the last transaction cannot be told from a power cut", () => {
    const { path } = writeLog();
    flip(path, readFileSync(path).length - 1, 0);
    expect(findLogDamage(path)).toBeNull();
  });
});

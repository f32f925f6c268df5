/**
 * What runs consist of but for their rows: blocks of entries, and parts of filters, a row each and a page of
 * 4 KiB at most. A part is unsigned integers of 32 bits, little endian, and then the CRC-32 of its run, its
 * number and those integers: one that belongs elsewhere is as damaged as one with another bit in it.
 */
import type { Database } from "bun:sqlite";
import { DamagedIndexError } from "../failures.ts";

/** Of one run. */
const PARTS_MAX = 2 ** 24;
const WORD_BYTES = 4;

const nouns = { dedupe_blocks: "block", dedupe_filters: "filter part" } as const;

/** Those of one table. */
export class Parts {
  readonly #noun: string;
  readonly #read;
  readonly #write;
  readonly #next;
  readonly #remove;

  constructor(db: Database, table: keyof typeof nouns) {
    this.#noun = nouns[table];
    this.#read = db.query<{ words: Uint8Array }, [number]>(
      `SELECT words FROM ${table} WHERE id = ?`,
    );
    this.#write = db.query(`INSERT INTO ${table} (id, words) VALUES (?, ?)`);
    this.#next = db.query<{ id: number }, [number]>(
      `SELECT id FROM ${table} WHERE id >= ? ORDER BY id LIMIT 1`,
    );
    this.#remove = db.query(`DELETE FROM ${table} WHERE id >= ? AND id < ?`);
  }

  /** Throws {@link DamagedIndexError}. */
  read(run: number, part: number): Uint32Array {
    const bytes = this.#read.get(idOf(run, part))?.words;
    if (bytes === undefined || bytes.length < WORD_BYTES || bytes.length % WORD_BYTES !== 0)
      throw this.notAsWritten(run, part);
    // A copy where SQLite's bytes do not lie on a boundary of words.
    const aligned = bytes.byteOffset % WORD_BYTES === 0 ? bytes : bytes.slice();
    const all = new Uint32Array(aligned.buffer, aligned.byteOffset, aligned.length / WORD_BYTES);
    const words = all.subarray(0, -1);
    if (checksum(run, part, words) !== all[all.length - 1]) throw this.notAsWritten(run, part);
    return words;
  }

  write(run: number, part: number, words: Uint32Array): void {
    if (part >= PARTS_MAX) throw new Error("a run of the deduplication index is too long");
    const all = new Uint32Array(words.length + 1);
    all.set(words);
    all[words.length] = checksum(run, part, words);
    this.#write.run(idOf(run, part), new Uint8Array(all.buffer));
  }

  /** The number of the first run from `run` on that has a part here; null where there is none. */
  nextRun(run: number): number | null {
    const next = this.#next.get(idOf(run, 0));
    return next === null ? null : Math.floor(next.id / PARTS_MAX);
  }

  /** Removes up to so many parts of a run; false where it has none any more. */
  removeSome(run: number, partsMax: number): boolean {
    const first = this.#next.get(idOf(run, 0));
    if (first === null || first.id >= idOf(run + 1, 0)) return false;
    this.#remove.run(first.id, Math.min(first.id + partsMax, idOf(run + 1, 0)));
    return true;
  }

  notAsWritten(run: number, part: number): DamagedIndexError {
    return new DamagedIndexError(`${this.#noun} ${part} of run ${run} is not as it was written`);
  }
}

/** Those of all runs. */
export class RunParts {
  readonly blocks: Parts;
  readonly filters: Parts;

  constructor(db: Database) {
    this.blocks = new Parts(db, "dedupe_blocks");
    this.filters = new Parts(db, "dedupe_filters");
  }

  /** As {@link Parts.nextRun}. */
  nextRun(run: number): number | null {
    const next = Math.min(
      this.blocks.nextRun(run) ?? Infinity,
      this.filters.nextRun(run) ?? Infinity,
    );
    return next === Infinity ? null : next;
  }

  /** As {@link Parts.removeSome}. */
  removeSome(run: number, partsMax: number): boolean {
    return this.blocks.removeSome(run, partsMax) || this.filters.removeSome(run, partsMax);
  }
}

function idOf(run: number, part: number): number {
  return run * PARTS_MAX + part;
}

/** Of all three, one after the other. */
function checksum(run: number, part: number, words: Uint32Array): number {
  return Bun.hash.crc32(words, Bun.hash.crc32(Uint32Array.of(run, part)));
}

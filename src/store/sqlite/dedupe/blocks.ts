/**
 * Blocks of entries in the table `dedupe_blocks`. An entry is two unsigned integers of 32 bits, little
 * endian: a signal's place behind the first one of its run, and the hash of its id. Entries are sorted by
 * hash, then place: as one integer of 64 bits. A block ends with the CRC-32 of its entries.
 */
import type { Database } from "bun:sqlite";
import { DamagedIndexError } from "../failures.ts";

/** With its checksum and what SQLite adds, a block fills one page of 4 KiB. */
export const BLOCK_ENTRIES = 500;
/** Of one run. */
const BLOCKS_MAX = 2 ** 24;

const WORDS_AN_ENTRY = 2;
const BYTES_AN_ENTRY = 8;
const CHECKSUM_BYTES = 4;

export class Blocks {
  readonly #read;
  readonly #write;
  readonly #next;
  readonly #remove;

  constructor(db: Database) {
    this.#read = db.query<{ entries: Uint8Array }, [number]>(
      "SELECT entries FROM dedupe_blocks WHERE id = ?",
    );
    this.#write = db.query("INSERT INTO dedupe_blocks (id, entries) VALUES (?, ?)");
    this.#next = db.query<{ id: number }, [number]>(
      "SELECT id FROM dedupe_blocks WHERE id >= ? ORDER BY id LIMIT 1",
    );
    this.#remove = db.query("DELETE FROM dedupe_blocks WHERE id >= ? AND id < ?");
  }

  /** Place and hash in turns. Throws {@link DamagedIndexError}. */
  read(run: number, block: number): Uint32Array {
    const bytes = this.#read.get(idOf(run, block))?.entries;
    const length = (bytes?.length ?? 0) - CHECKSUM_BYTES;
    if (bytes === undefined || length <= 0 || length % BYTES_AN_ENTRY !== 0) {
      throw new DamagedIndexError(`block ${block} of run ${run} is not as it was written`);
    }
    // A copy where SQLite's bytes do not lie on a boundary of words.
    const aligned = bytes.byteOffset % CHECKSUM_BYTES === 0 ? bytes : bytes.slice();
    const words = new Uint32Array(aligned.buffer, aligned.byteOffset, aligned.length / 4);
    const entries = words.subarray(0, -1);
    if (checksum(entries) !== words[words.length - 1])
      throw new DamagedIndexError(`block ${block} of run ${run} is not as it was written`);
    return entries;
  }

  write(run: number, block: number, entries: Uint32Array): void {
    if (block >= BLOCKS_MAX) throw new Error("a run of the deduplication index is too long");
    const words = new Uint32Array(entries.length + 1);
    words.set(entries);
    words[entries.length] = checksum(entries);
    this.#write.run(idOf(run, block), new Uint8Array(words.buffer));
  }

  /** The number of the first run from `run` on that has a block; null where there is none. */
  nextRun(run: number): number | null {
    const next = this.#next.get(idOf(run, 0));
    return next === null ? null : Math.floor(next.id / BLOCKS_MAX);
  }

  /** Removes up to so many blocks of a run; false where it has none any more. */
  removeSome(run: number, blocksMax: number): boolean {
    const first = this.#next.get(idOf(run, 0));
    if (first === null || first.id >= idOf(run + 1, 0)) return false;
    this.#remove.run(first.id, Math.min(first.id + blocksMax, idOf(run + 1, 0)));
    return true;
  }
}

/** How many entries a part of a block or run has. */
export function countOf(entries: Uint32Array): number {
  return entries.length / WORDS_AN_ENTRY;
}

function idOf(run: number, block: number): number {
  return run * BLOCKS_MAX + block;
}

function checksum(entries: Uint32Array): number {
  return Bun.hash.crc32(entries);
}

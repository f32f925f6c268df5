/**
 * Tells in memory that a hash is not in a run, nearly always that it is not: a Bloom filter whose bits for
 * one hash are in one line of a processor's cache (Putze, Sanders, Singler: "Cache-, Hash- and
 * Space-Efficient Bloom Filters", 2007). About 1 in 150 hashes that are not there passes. On disk it is in
 * parts of a page each, and nothing but its run tells how large it is: to change a constant here is to
 * change the format of the database.
 */
import type { Parts } from "./parts.ts";

const BITS_AN_ENTRY = 12;
const WORDS_A_LINE = 16;
const LINE_BITS = WORDS_A_LINE * 32;
/**
 * 64 MiB. A run of more than 44 million entries has fewer bits for each, and is looked into more often: one of
 * 80 million for 1 in 20 absent ids. With half as many it was 1 in 3, and the rate a quarter.
 */
const LINES_MAX = (64 * 1024 * 1024) / 64;
/** A mixed hash has bits for three, at nine each. */
const PROBES_A_MIX = 3;
/** With its checksum and what SQLite adds, a part fills one page of 4 KiB. */
const WORDS_A_PART = 63 * WORDS_A_LINE;

export class Filter {
  readonly #lines: number;
  readonly #words: Uint32Array;

  /** For so many entries. */
  constructor(entries: number) {
    const lines = Math.ceil((entries * BITS_AN_ENTRY) / LINE_BITS);
    this.#lines = Math.min(LINES_MAX, Math.max(1, lines));
    this.#words = new Uint32Array(this.#lines * WORDS_A_LINE);
  }

  /** As it was written for a run. Throws {@link DamagedIndexError}. */
  static read(filters: Parts, { id, entries }: { id: number; entries: number }): Filter {
    const filter = new Filter(entries);
    for (let part = 0; part < filter.parts; part += 1) {
      const to = filter.part(part);
      const words = filters.read(id, part);
      if (words.length !== to.length) throw filters.notAsWritten(id, part);
      to.set(words);
    }
    return filter;
  }

  /** How many it has. */
  get parts(): number {
    return Math.ceil(this.#words.length / WORDS_A_PART);
  }

  /** Its own memory. */
  part(part: number): Uint32Array {
    return this.#words.subarray(part * WORDS_A_PART, (part + 1) * WORDS_A_PART);
  }

  /** Which one this hash is in. Greater hashes are in it or in a later one. */
  partOf(hash: number): number {
    return Math.floor(this.#lineOf(hash) / WORDS_A_PART);
  }

  add(hash: number): void {
    const line = this.#lineOf(hash);
    const first = mix(hash);
    this.#addBits(line, first);
    this.#addBits(line, mix(first + 1));
  }

  /** False: it was not added. */
  mayHave(hash: number): boolean {
    const line = this.#lineOf(hash);
    const first = mix(hash);
    return this.#hasBits(line, first) && this.#hasBits(line, mix(first + 1));
  }

  #addBits(line: number, mixed: number): void {
    let bits = mixed;
    for (let probe = 0; probe < PROBES_A_MIX; probe += 1) {
      const word = line + ((bits >>> 5) & (WORDS_A_LINE - 1));
      this.#words[word] = (this.#words[word] as number) | (1 << (bits & 31));
      bits >>>= 9;
    }
  }

  #hasBits(line: number, mixed: number): boolean {
    let bits = mixed;
    for (let probe = 0; probe < PROBES_A_MIX; probe += 1) {
      const word = this.#words[line + ((bits >>> 5) & (WORDS_A_LINE - 1))] as number;
      if ((word & (1 << (bits & 31))) === 0) return false;
      bits >>>= 9;
    }
    return true;
  }

  /** In the order of the hashes: what is added in order is written from front to back. */
  #lineOf(hash: number): number {
    return Math.floor((hash / 2 ** 32) * this.#lines) * WORDS_A_LINE;
  }
}

/** The finalizer of MurmurHash3: each bit of the hash changes half of the result's. */
function mix(hash: number): number {
  let bits = hash ^ (hash >>> 16);
  bits = Math.imul(bits, 0x85ebca6b);
  bits ^= bits >>> 13;
  bits = Math.imul(bits, 0xc2b2ae35);
  return (bits ^ (bits >>> 16)) >>> 0;
}

/**
 * Tells in memory that a hash is not in a run, most of the time that it is not: a Bloom filter whose bits
 * for one hash are in one line of a processor's cache (Putze, Sanders, Singler: "Cache-, Hash- and
 * Space-Efficient Bloom Filters", 2007).
 */
const BITS_AN_ENTRY = 8;
const WORDS_A_LINE = 16;
const LINE_BITS = WORDS_A_LINE * 32;
/** 32 MiB. A run of more than 32 million entries has fewer bits for each, and is looked into more often. */
const LINES_MAX = (32 * 1024 * 1024) / 64;
const PROBES = 3;

export class Filter {
  readonly #lines: number;
  readonly #words: Uint32Array;

  /** For so many entries. */
  constructor(entries: number) {
    const lines = Math.ceil((entries * BITS_AN_ENTRY) / LINE_BITS);
    this.#lines = Math.min(LINES_MAX, Math.max(1, lines));
    this.#words = new Uint32Array(this.#lines * WORDS_A_LINE);
  }

  add(hash: number): void {
    const line = this.#lineOf(hash);
    let bits = mix(hash);
    for (let probe = 0; probe < PROBES; probe += 1) {
      const word = line + ((bits >>> 5) & (WORDS_A_LINE - 1));
      this.#words[word] = (this.#words[word] as number) | (1 << (bits & 31));
      bits >>>= 9;
    }
  }

  /** False: it was not added. */
  mayHave(hash: number): boolean {
    const line = this.#lineOf(hash);
    let bits = mix(hash);
    for (let probe = 0; probe < PROBES; probe += 1) {
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

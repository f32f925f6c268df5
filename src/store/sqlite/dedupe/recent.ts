/** The newest entries, in memory: an open hash table with linear probing, of fixed-width columns. */

/** One slot in so many is empty at least. */
const LOAD_MAX = 0.5;
const SLOTS_MIN = 1 << 12;

export class RecentEntries {
  #hashes = new Uint32Array(SLOTS_MIN);
  /** The entry's place behind {@link firstSeq}, counted from 1; 0 for an empty slot. */
  #places = new Uint32Array(SLOTS_MIN);
  #count = 0;
  readonly firstSeq: number;

  /** `firstSeq`: no entry is older. */
  constructor(firstSeq: number) {
    this.firstSeq = firstSeq;
  }

  get count(): number {
    return this.#count;
  }

  add(hash: number, seq: number): void {
    if (this.#count >= this.#hashes.length * LOAD_MAX) this.#grow();
    this.#put(hash, seq - this.firstSeq + 1);
    this.#count += 1;
  }

  /** Adds the places of all signals whose ids have this hash. */
  find(hash: number, seqs: number[]): void {
    const mask = this.#hashes.length - 1;
    for (let slot = hash & mask; this.#places[slot] !== 0; slot = (slot + 1) & mask) {
      if (this.#hashes[slot] === hash)
        seqs.push((this.#places[slot] as number) - 1 + this.firstSeq);
    }
  }

  /** As a run has them (`block.ts`). */
  sorted(): Uint32Array {
    const entries = new BigUint64Array(this.#count);
    const halves = new Uint32Array(entries.buffer);
    let at = 0;
    for (let slot = 0; slot < this.#places.length; slot += 1) {
      const place = this.#places[slot] as number;
      if (place === 0) continue;
      halves[at] = place - 1;
      halves[at + 1] = this.#hashes[slot] as number;
      at += 2;
    }
    entries.sort();
    return halves;
  }

  #put(hash: number, place: number): void {
    const mask = this.#hashes.length - 1;
    let slot = hash & mask;
    while (this.#places[slot] !== 0) slot = (slot + 1) & mask;
    this.#hashes[slot] = hash;
    this.#places[slot] = place;
  }

  #grow(): void {
    const hashes = this.#hashes;
    const places = this.#places;
    this.#hashes = new Uint32Array(hashes.length * 2);
    this.#places = new Uint32Array(hashes.length * 2);
    for (let slot = 0; slot < places.length; slot += 1) {
      if (places[slot] !== 0) this.#put(hashes[slot] as number, places[slot] as number);
    }
  }
}

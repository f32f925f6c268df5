/**
 * A sorted run: the entries of all signals between two places in the order of storage. An entry is two
 * integers: a signal's place behind the first one of its run, and the hash of its id. Entries are sorted by
 * hash, then place: as one integer of 64 bits.
 */
import type { Filter } from "./filter.ts";
import type { Parts } from "./parts.ts";

/** With its checksum and what SQLite adds, a block fills one page of 4 KiB. */
export const BLOCK_ENTRIES = 500;
const WORDS_AN_ENTRY = 2;

/** What is known of a run before it is written. */
export interface RunPlan {
  readonly id: number;
  /** How often its entries were merged. */
  readonly level: number;
  /** It has the entries of the signals from here … */
  readonly firstSeq: number;
  /** … to here. */
  readonly lastSeq: number;
  readonly entries: number;
  /** Of its hashes. */
  readonly seed: string;
}

export class Run implements RunPlan {
  readonly id: number;
  readonly level: number;
  readonly firstSeq: number;
  readonly lastSeq: number;
  readonly entries: number;
  readonly seed: string;
  /** The first hash of each block. */
  readonly fences: Uint32Array;
  /** Null for those who look for one id: reading it would be to read more than the run. */
  filter: Filter | null;

  constructor(plan: RunPlan, fences: Uint32Array, filter: Filter | null) {
    this.id = plan.id;
    this.level = plan.level;
    this.firstSeq = plan.firstSeq;
    this.lastSeq = plan.lastSeq;
    this.entries = plan.entries;
    this.seed = plan.seed;
    this.fences = fences;
    this.filter = filter;
  }

  /** Adds the places of all signals whose ids have this hash. */
  find(blocks: Parts, hash: number, seqs: number[]): void {
    if (this.filter !== null && !this.filter.mayHave(hash)) return;
    // Equal hashes may begin in the block before the first one that begins with theirs.
    for (
      let block = Math.max(0, this.#firstFence(hash) - 1);
      block < this.fences.length;
      block += 1
    ) {
      if ((this.fences[block] as number) > hash) return;
      const entries = blocks.read(this.id, block);
      for (let at = lowerBound(entries, hash); at < entries.length; at += 2) {
        if (entries[at + 1] !== hash) return;
        seqs.push(this.firstSeq + (entries[at] as number));
      }
    }
  }

  /** Of the first block whose first hash is this one or greater. */
  #firstFence(hash: number): number {
    let low = 0;
    let high = this.fences.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((this.fences[middle] as number) < hash) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}

/** Where in a block the first entry is whose hash is this one or greater, in words. */
function lowerBound(entries: Uint32Array, hash: number): number {
  let low = 0;
  let high = entries.length / 2;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((entries[middle * 2 + 1] as number) < hash) low = middle + 1;
    else high = middle;
  }
  return low * 2;
}

/** How many entries a part of a block or run has. */
export function countOf(entries: Uint32Array): number {
  return entries.length / WORDS_AN_ENTRY;
}

/** A sorted run: the entries of all signals between two places in the order of storage. */
import type { Blocks } from "./blocks.ts";
import { Filter } from "./filter.ts";

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
  /** Null until it has been made: then the run is looked into each time. */
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
  find(blocks: Blocks, hash: number, seqs: number[]): void {
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

/** Makes the filter of a run that was read from the database, part by part. */
export class FilterBuilder {
  readonly run: Run;
  readonly #filter: Filter;
  #block = 0;

  constructor(run: Run) {
    this.run = run;
    this.#filter = new Filter(run.entries);
  }

  /** True when the run has its filter. */
  addSome(blocks: Blocks, blocksMax: number): boolean {
    const end = Math.min(this.#block + blocksMax, this.run.fences.length);
    for (; this.#block < end; this.#block += 1) {
      const entries = blocks.read(this.run.id, this.#block);
      for (let at = 1; at < entries.length; at += 2) this.#filter.add(entries[at] as number);
    }
    if (this.#block < this.run.fences.length) return false;
    this.run.filter = this.#filter;
    return true;
  }
}

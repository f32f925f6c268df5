/** Writes a run: from entries that are sorted already, or from several runs, part by part. */
import { Filter } from "./filter.ts";
import type { Parts, RunParts } from "./parts.ts";
import { BLOCK_ENTRIES, countOf, Run, type RunPlan } from "./run.ts";

/** Collects entries into blocks, and into the run's filter. */
class RunWriter {
  readonly plan: RunPlan;
  readonly #parts: RunParts;
  readonly #filter: Filter;
  readonly #fences: Uint32Array;
  readonly #block = new Uint32Array(BLOCK_ENTRIES * 2);
  #used = 0;
  #blocksWritten = 0;
  #filterPartsWritten = 0;

  constructor(parts: RunParts, plan: RunPlan) {
    this.plan = plan;
    this.#parts = parts;
    this.#filter = new Filter(plan.entries);
    this.#fences = new Uint32Array(Math.ceil(plan.entries / BLOCK_ENTRIES));
  }

  add(place: number, hash: number): void {
    this.#filter.add(hash);
    this.#block[this.#used] = place;
    this.#block[this.#used + 1] = hash;
    this.#used += 2;
    if (this.#used === this.#block.length) this.#flush();
  }

  end(): Run {
    if (this.#used > 0) this.#flush();
    this.#writeFilter(this.#filter.parts);
    return new Run(this.plan, this.#fences, this.#filter);
  }

  #flush(): void {
    const block = this.#block.subarray(0, this.#used);
    this.#fences[this.#blocksWritten] = block[1] as number;
    this.#parts.blocks.write(this.plan.id, this.#blocksWritten, block);
    this.#blocksWritten += 1;
    this.#used = 0;
    // Hashes rise, so nothing is added any more to the parts before the newest one's.
    this.#writeFilter(this.#filter.partOf(block.at(-1) as number));
  }

  /** As far as this part. */
  #writeFilter(end: number): void {
    for (; this.#filterPartsWritten < end; this.#filterPartsWritten += 1) {
      const part = this.#filterPartsWritten;
      this.#parts.filters.write(this.plan.id, part, this.#filter.part(part));
    }
  }
}

export function writeRun(parts: RunParts, plan: RunPlan, entries: Uint32Array): Run {
  const writer = new RunWriter(parts, plan);
  for (let at = 0; at < entries.length; at += 2) {
    writer.add(entries[at] as number, entries[at + 1] as number);
  }
  return writer.end();
}

/** Reads a run from its first entry to its last. `firstSeq`: what its places are counted from. */
export class Cursor {
  readonly #blocks: Parts;
  readonly #run: Run;
  /** From the places of this run to those of the one that is written. */
  readonly #offset: number;
  #block = 0;
  #entries: Uint32Array = new Uint32Array(0);
  #at = 0;
  hash = 0;
  place = 0;
  isAtEnd = false;

  constructor(blocks: Parts, run: Run, firstSeq: number) {
    this.#blocks = blocks;
    this.#run = run;
    this.#offset = run.firstSeq - firstSeq;
    this.advance();
  }

  advance(): void {
    if (this.#at === this.#entries.length) {
      if (this.#block === this.#run.fences.length) {
        this.isAtEnd = true;
        return;
      }
      this.#entries = this.#blocks.read(this.#run.id, this.#block);
      this.#block += 1;
      this.#at = 0;
    }
    this.place = (this.#entries[this.#at] as number) + this.#offset;
    this.hash = this.#entries[this.#at + 1] as number;
    this.#at += 2;
  }
}

/** Several runs, next to each other in the order of storage, into one. */
export class Merge {
  readonly inputs: readonly Run[];
  /** Of the run that it writes. */
  readonly runId: number;
  readonly #cursors: Cursor[];
  readonly #writer: RunWriter;

  /** Oldest first: of equal hashes the first one's places are the lowest. */
  constructor(parts: RunParts, inputs: readonly Run[], plan: RunPlan) {
    this.inputs = inputs;
    this.runId = plan.id;
    this.#cursors = inputs.map((run) => new Cursor(parts.blocks, run, plan.firstSeq));
    this.#writer = new RunWriter(parts, plan);
  }

  /** The run, once it is whole. */
  mergeSome(entriesMax: number): Run | null {
    for (let count = 0; count < entriesMax; count += 1) {
      const lowest = lowestOf(this.#cursors);
      if (lowest === null) return this.#writer.end();
      this.#writer.add(lowest.place, lowest.hash);
      lowest.advance();
    }
    return null;
  }
}

/** The one at the lowest hash; of equal ones the first. Null where all are at their ends. */
export function lowestOf(cursors: readonly Cursor[]): Cursor | null {
  let lowest: Cursor | null = null;
  for (const cursor of cursors) {
    if (cursor.isAtEnd) continue;
    if (lowest === null || cursor.hash < lowest.hash) lowest = cursor;
  }
  return lowest;
}

export function planOf(id: number, inputs: readonly Run[]): RunPlan {
  const first = inputs[0];
  const last = inputs.at(-1);
  if (first === undefined || last === undefined) throw new Error("nothing to merge");
  return {
    id,
    level: first.level + 1,
    firstSeq: first.firstSeq,
    lastSeq: last.lastSeq,
    entries: inputs.reduce((sum, { entries }) => sum + entries, 0),
    seed: first.seed,
  };
}

export function planOfRecent(
  id: number,
  range: Pick<RunPlan, "firstSeq" | "lastSeq" | "seed">,
  entries: Uint32Array,
): RunPlan {
  return { id, level: 0, ...range, entries: countOf(entries) };
}

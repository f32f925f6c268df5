/** Whether the index of deduplication is true, and no signal is there twice. */
import type { Database } from "bun:sqlite";
import { Filter } from "./filter.ts";
import { IdHash, nameOf, newSeed } from "./hash.ts";
import { Cursor, lowestOf } from "./merge.ts";
import { type Parts, RunParts } from "./parts.ts";
import { RecentEntries } from "./recent.ts";
import type { Run } from "./run.ts";
import { coveredSeq, newestSeq, readRuns } from "./runs.ts";

interface Scanned {
  readonly seq: number;
  readonly desk_id: number;
  readonly client_signal_id: string;
}

/**
 * The first problems; none where all is well. Reads the signals in their order, and each run in its own:
 * nothing is looked up but signals whose ids have the same hash.
 */
export function dedupeProblems(db: Database, problemsMax: number): string[] {
  const runs = readRuns(db);
  const parts = new RunParts(db);
  const hash = new IdHash(runs[0]?.seed ?? newSeed());
  const problems =
    coveredSeq(runs) > newestSeq(db) ? ["the last run ends behind the last signal"] : [];
  for (const run of runs) {
    if (problems.length >= problemsMax) return problems;
    if (sumOfRun(parts.blocks, run) !== sumOfSignals(db, hash, run)) {
      problems.push(`run ${run.id} does not have the entries of its signals`);
    }
    if (!isFilterOf(parts, run)) {
      problems.push(`the filter of run ${run.id} does not have all of its entries`);
    }
  }
  if (problems.length > 0) return problems;
  return doubles(db, sortedEntries(db, parts.blocks, hash, runs), problemsMax);
}

/** Of entries in any order: the same for the same entries, and for hardly any others. */
class EntrySum {
  #count = 0;
  #low = 0;
  #high = 0;

  add(hash: number, seq: number): void {
    this.#count += 1;
    const low = Math.imul(hash ^ Math.imul(seq | 0, 0x9e3779b1), 0x85ebca6b);
    const high = Math.imul(low ^ (low >>> 15) ^ Math.floor(seq / 2 ** 32), 0xc2b2ae35) ^ hash;
    this.#low = (this.#low + low) | 0;
    this.#high = (this.#high + (high ^ (high >>> 13))) | 0;
  }

  toString(): string {
    return `${this.#count} ${this.#low} ${this.#high}`;
  }
}

function sumOfRun(blocks: Parts, run: Run): string {
  const sum = new EntrySum();
  let before = 0;
  for (const cursor = cursorOver(blocks, run); !cursor.isAtEnd; cursor.advance()) {
    if (cursor.hash < before) return "out of order";
    before = cursor.hash;
    sum.add(cursor.hash, cursor.place);
  }
  return sum.toString();
}

function sumOfSignals(db: Database, hash: IdHash, { firstSeq, lastSeq }: Run): string {
  const sum = new EntrySum();
  for (const entry of entriesOf(db, hash, firstSeq, lastSeq)) sum.add(entry.hash, entry.seq);
  return sum.toString();
}

/** An entry that it did not let through would be stored a second time. */
function isFilterOf({ blocks, filters }: RunParts, run: Run): boolean {
  const filter = Filter.read(filters, run);
  for (const cursor = cursorOver(blocks, run); !cursor.isAtEnd; cursor.advance()) {
    if (!filter.mayHave(cursor.hash)) return false;
  }
  return true;
}

/** Its places are those in the order of storage. */
function cursorOver(blocks: Parts, run: Run): Cursor {
  return new Cursor(blocks, run, 0);
}

interface Entry {
  readonly hash: number;
  readonly seq: number;
}

/** As the signals themselves have them, in the order of storage. */
function* entriesOf(
  db: Database,
  hash: IdHash,
  firstSeq: number,
  lastSeq: number,
): Generator<Entry> {
  const scan = db.query<Scanned, [number, number]>(
    `SELECT seq, desk_id, client_signal_id FROM signals NOT INDEXED
     WHERE seq >= ? AND seq <= ? AND client_signal_id IS NOT NULL ORDER BY seq`,
  );
  for (const { seq, desk_id, client_signal_id: id } of scan.iterate(firstSeq, lastSeq)) {
    yield { hash: hash.of(nameOf(desk_id, id)), seq };
  }
}

/** All of them, by hash. */
function* sortedEntries(
  db: Database,
  blocks: Parts,
  hash: IdHash,
  runs: readonly Run[],
): Generator<Entry> {
  const firstSeq = coveredSeq(runs) + 1;
  const recent = new RecentEntries(firstSeq);
  for (const entry of entriesOf(db, hash, firstSeq, Number.MAX_SAFE_INTEGER)) {
    recent.add(entry.hash, entry.seq);
  }
  const newest = recent.sorted();
  let at = 0;
  const cursors = runs.map((run) => cursorOver(blocks, run));
  for (;;) {
    const lowest = lowestOf(cursors);
    const newestHash = newest[at + 1];
    if (lowest === null && newestHash === undefined) return;
    if (lowest !== null && (newestHash === undefined || lowest.hash <= newestHash)) {
      yield { hash: lowest.hash, seq: lowest.place };
      lowest.advance();
    } else {
      yield { hash: newestHash as number, seq: firstSeq + (newest[at] as number) };
      at += 2;
    }
  }
}

function doubles(db: Database, entries: Generator<Entry>, problemsMax: number): string[] {
  const read = db.query<Scanned, [number]>(
    "SELECT seq, desk_id, client_signal_id FROM signals WHERE seq = ?",
  );
  const problems: string[] = [];
  let same: Entry[] = [];
  for (const entry of entries) {
    if (same[0]?.hash !== entry.hash) same = [];
    const mine = same.length === 0 ? null : read.get(entry.seq);
    for (const { seq } of same) {
      const other = read.get(seq);
      const isSame =
        mine?.desk_id === other?.desk_id && mine?.client_signal_id === other?.client_signal_id;
      if (isSame) problems.push(`seq ${seq} and seq ${entry.seq} have the same id`);
    }
    if (problems.length >= problemsMax) return problems;
    same.push(entry);
  }
  return problems;
}

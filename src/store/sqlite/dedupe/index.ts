/**
 * Where each `client_signal_id` was stored first: the index behind exactly once. A unique index of SQLite
 * would put each random id on another page, which a commit writes whole and a checkpoint once more: at ten
 * million signals that is most of the work of storing one (`docs/performance.md`).
 *
 * An entry is 8 bytes: the hash of desk and id, and the signal's place. The newest entries are in memory,
 * and are read again from the signals themselves at a start. When there are many they are written, sorted,
 * as a run; four runs of one size are merged into one. Runs are never changed. Each has a filter, which is
 * written with it and read at a start, and tells in memory that a hash is not in it; where it may be, one
 * block is read. An entry that is found is only a candidate: the signal at its place has the last word.
 *
 * Nothing here is needed to know what is stored. Runs may be removed while no server runs: the next one
 * makes them anew.
 */
import type { Database } from "bun:sqlite";
import { DamagedIndexError } from "../failures.ts";
import { inTransaction } from "../transaction.ts";
import { Filter } from "./filter.ts";
import { IdHash, nameOf, newSeed } from "./hash.ts";
import { Merge, planOf, planOfRecent, writeRun } from "./merge.ts";
import { RunParts } from "./parts.ts";
import { RecentEntries } from "./recent.ts";
import { BLOCK_ENTRIES, type Run } from "./run.ts";
import { coveredSeq, insertRun, newestSeq, readRuns, removeRuns } from "./runs.ts";

/** Smaller ones make a test of a long life short. */
export interface DedupeLimits {
  /** Entries that are kept in memory before they are written as a run: sorted and written in some milliseconds. */
  readonly recentMax: number;
  /** Signals whose entries are in no run yet: bounds what a start has to read. */
  readonly uncoveredMax: number;
  /** Runs of one level that are merged into one of the next. */
  readonly fanOut: number;
  /** Entries in one part of the work: under a millisecond. */
  readonly mergedAPart: number;
}

const defaultLimits: DedupeLimits = {
  recentMax: 16_384,
  uncoveredMax: 65_536,
  fanOut: 4,
  mergedAPart: 8_000,
};

/** As short, or nearly. */
const REMOVED_PARTS_A_PART = 64;

/** Of a scan of the signals. */
const SCANNED_ROWS = 10_000;

/** The highest place that an entry has room for. */
const PLACES_MAX = 2 ** 32 - 2;

const NONE: readonly number[] = [];

/** What a signal is looked up by. */
export interface DedupeKey {
  readonly deskId: number;
  readonly clientSignalId: string;
  /** Both, in one text. */
  readonly name: string;
  readonly hash: number;
}

export class DedupeIndex {
  readonly #db: Database;
  readonly #limits: DedupeLimits;
  readonly #hash: IdHash;
  readonly #parts: RunParts;
  /** Oldest first. */
  #runs: Run[];
  #recent: RecentEntries;
  /** The newest signal that it knows. */
  #lastSeq: number;
  #nextRunId: number;
  readonly #merges = new Map<number, Merge>();
  /** Runs that are not in use any more, of which parts are still there. */
  #leftovers: number[];

  /** Reads what is there, and the signals that came since. Takes long where there is nothing. */
  constructor(db: Database, limits: DedupeLimits = defaultLimits) {
    this.#db = db;
    this.#limits = limits;
    this.#parts = new RunParts(db);
    this.#runs = readRuns(db);
    for (const run of this.#runs) run.filter = Filter.read(this.#parts.filters, run);
    this.#hash = new IdHash(this.#runs[0]?.seed ?? newSeed());
    this.#leftovers = this.#findLeftovers();
    this.#nextRunId = Math.max(0, ...this.#runs.map(({ id }) => id), ...this.#leftovers) + 1;
    this.#lastSeq = this.#coveredSeq;
    if (this.#lastSeq > newestSeq(db)) {
      throw new DamagedIndexError("its last run ends behind the last signal");
    }
    this.#recent = new RecentEntries(this.#lastSeq + 1);
    this.#catchUp();
  }

  keyOf(deskId: number, clientSignalId: string): DedupeKey {
    const name = nameOf(deskId, clientSignalId);
    return { deskId, clientSignalId, name, hash: this.#hash.of(name) };
  }

  /** The places of all signals that may have the id of this hash, in no order. */
  candidates(hash: number): readonly number[] {
    const seqs: number[] = [];
    this.#recent.find(hash, seqs);
    for (const run of this.#runs) run.find(this.#parts.blocks, hash, seqs);
    return seqs.length === 0 ? NONE : seqs;
  }

  /** To be told of each signal once it is committed, in order; `key`: null for one without an id. */
  add(seq: number, key: DedupeKey | null): void {
    this.#lastSeq = seq;
    if (key !== null) this.#recent.add(key.hash, seq);
  }

  /** Whether there is anything for {@link work} to do. */
  get isWorkDue(): boolean {
    return this.#isRecentFull || this.#leftovers.length > 0 || this.#isMergeDue;
  }

  /**
   * One part of what keeps the index small and fast, in a transaction of its own; commits wait for it.
   * Returns about how many pages it has written. Where it throws, nothing has changed but for work that
   * must be begun again.
   */
  work(): number {
    try {
      if (this.#isRecentFull) return this.#writeRecent();
      if (this.#isMergeDue) return this.#mergeSome();
      return this.#removeSome();
    } catch (error) {
      // What they had in memory may not be what is in the database now.
      this.#leftovers.push(...[...this.#merges.values()].map(({ runId }) => runId));
      this.#merges.clear();
      throw error;
    }
  }

  /** Writes what is in memory: each id is on the disk twice then, and a bit of one that flips is seen. */
  cover(): void {
    if (this.#lastSeq > this.#coveredSeq) this.#writeRecent();
  }

  /** Does all that is due, and more: for a copy that is to be complete. */
  complete(): void {
    this.cover();
    while (this.#isMergeDue || this.#leftovers.length > 0) this.work();
  }

  get #coveredSeq(): number {
    return coveredSeq(this.#runs);
  }

  get #isRecentFull(): boolean {
    const { recentMax, uncoveredMax } = this.#limits;
    return this.#recent.count >= recentMax || this.#lastSeq - this.#coveredSeq >= uncoveredMax;
  }

  get #isMergeDue(): boolean {
    return this.#merges.size > 0 || this.#mergeable() !== null;
  }

  #findLeftovers(): number[] {
    const known = new Set(this.#runs.map(({ id }) => id));
    const found: number[] = [];
    for (let id = this.#parts.nextRun(0); id !== null; id = this.#parts.nextRun(id + 1)) {
      if (!known.has(id)) found.push(id);
    }
    return found;
  }

  #catchUp(): void {
    const newer = this.#db.query<
      { seq: number; desk_id: number; client_signal_id: string | null },
      [number]
    >(
      `SELECT seq, desk_id, client_signal_id FROM signals NOT INDEXED
       WHERE seq > ? ORDER BY seq LIMIT ${SCANNED_ROWS}`,
    );
    const first = this.#lastSeq;
    for (;;) {
      const rows = newer.all(this.#lastSeq);
      for (const { seq, desk_id, client_signal_id: id } of rows) {
        if (seq - this.#coveredSeq > PLACES_MAX) this.#coverTo(seq - 1);
        this.add(seq, id === null ? null : this.keyOf(desk_id, id));
      }
      if (this.#isRecentFull) this.#writeRecent();
      // After a crash, which leaves little, what is due else can wait until the server serves.
      if (this.#lastSeq - first > this.#limits.uncoveredMax) {
        while (this.isWorkDue) this.work();
      }
      if (rows.length < SCANNED_ROWS) return;
    }
  }

  /** Where numbers were left out, which no server of ours does. */
  #coverTo(seq: number): void {
    this.#lastSeq = seq;
    this.#writeRecent();
  }

  #writeRecent(): number {
    const entries = this.#recent.sorted();
    const { seed } = this.#hash;
    const range = { firstSeq: this.#coveredSeq + 1, lastSeq: this.#lastSeq, seed };
    const plan = planOfRecent(this.#takeRunId(), range, entries);
    const run = inTransaction(this.#db, () => {
      const written = writeRun(this.#parts, plan, entries);
      insertRun(this.#db, written);
      return written;
    });
    this.#runs.push(run);
    this.#recent = new RecentEntries(this.#lastSeq + 1);
    return run.fences.length;
  }

  /** Small runs first: there are more of them. */
  #mergeSome(): number {
    const mergeable = this.#mergeable();
    const level = Math.min(...this.#merges.keys(), mergeable?.[0]?.level ?? Infinity);
    let merge = this.#merges.get(level);
    if (merge === undefined) {
      if (mergeable === null) throw new Error("unreachable: nothing to merge");
      merge = new Merge(this.#parts, mergeable, planOf(this.#takeRunId(), mergeable));
      this.#merges.set(level, merge);
    }
    const { inputs } = merge;
    const merged = inTransaction(this.#db, () => {
      const run = merge.mergeSome(this.#limits.mergedAPart);
      if (run === null) return null;
      removeRuns(this.#db, inputs);
      insertRun(this.#db, run);
      return run;
    });
    if (merged !== null) {
      this.#merges.delete(level);
      const at = this.#runs.indexOf(inputs[0] as Run);
      this.#runs.splice(at, inputs.length, merged);
      this.#leftovers.push(...inputs.map(({ id }) => id));
    }
    return Math.ceil(this.#limits.mergedAPart / BLOCK_ENTRIES);
  }

  /** The oldest runs of the lowest level that has enough of them, and is not being merged. */
  #mergeable(): Run[] | null {
    const levels = new Set(this.#runs.map(({ level }) => level));
    for (const level of [...levels].toSorted((a, b) => a - b)) {
      const found = this.#merges.has(level) ? null : this.#mergeableOf(level);
      if (found !== null) return found;
    }
    return null;
  }

  #mergeableOf(level: number): Run[] | null {
    const runs = this.#runs.filter((run) => run.level === level);
    for (let at = 0; at + this.#limits.fanOut <= runs.length; at += 1) {
      const inputs = runs.slice(at, at + this.#limits.fanOut);
      if (areOfOnePiece(inputs)) return inputs;
    }
    return null;
  }

  #removeSome(): number {
    const [run] = this.#leftovers;
    if (run === undefined) return 0;
    const isRest = inTransaction(this.#db, () => this.#parts.removeSome(run, REMOVED_PARTS_A_PART));
    if (!isRest) this.#leftovers.shift();
    return REMOVED_PARTS_A_PART;
  }

  #takeRunId(): number {
    this.#nextRunId += 1;
    return this.#nextRunId - 1;
  }
}

/** Next to each other, and near enough for the places of one run. */
function areOfOnePiece(inputs: readonly Run[]): boolean {
  const isInTurn = inputs.every(
    (run, at) => at === 0 || run.firstSeq === (inputs[at - 1]?.lastSeq ?? 0) + 1,
  );
  return isInTurn && (inputs.at(-1)?.lastSeq ?? 0) - (inputs[0]?.firstSeq ?? 0) <= PLACES_MAX;
}

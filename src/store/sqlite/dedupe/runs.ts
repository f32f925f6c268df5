/** The table `dedupe_runs`. */
import type { Database } from "bun:sqlite";
import { DamagedIndexError } from "../failures.ts";
import { BLOCK_ENTRIES, Run } from "./run.ts";

/** `fences`: integers of 32 bits, little endian. */
interface RunRow {
  readonly id: number;
  readonly level: number;
  readonly first_seq: number;
  readonly last_seq: number;
  readonly entries: number;
  readonly seed: string;
  readonly fences: Uint8Array;
  readonly checksum: number;
}

/** Oldest first: each begins where the one before ends. Throws {@link DamagedIndexError}. */
export function readRuns(db: Database): Run[] {
  const rows = db.query<RunRow, []>("SELECT * FROM dedupe_runs ORDER BY first_seq").all();
  const runs = rows.map(readRun);
  let covered = 0;
  for (const run of runs) {
    if (run.seed !== runs[0]?.seed) throw notAsWritten(run.id);
    if (run.firstSeq !== covered + 1) {
      throw new DamagedIndexError(`run ${run.id} does not begin where the one before ends`);
    }
    covered = run.lastSeq;
  }
  return runs;
}

function readRun({ checksum, fences, first_seq, last_seq, ...same }: RunRow): Run {
  const isWhole = fences.length === Math.ceil(same.entries / BLOCK_ENTRIES) * 4;
  if (!isWhole) throw notAsWritten(same.id);
  const plan = { ...same, firstSeq: first_seq, lastSeq: last_seq };
  const run = new Run(plan, new Uint32Array(fences.slice().buffer), null);
  if (checksum !== checksumOf(run)) throw notAsWritten(run.id);
  return run;
}

function notAsWritten(id: number): DamagedIndexError {
  return new DamagedIndexError(`run ${id} is not as it was written`);
}

/** The newest signal whose entry is in a run; 0 where there is none. */
export function coveredSeq(runs: readonly Run[]): number {
  return runs.at(-1)?.lastSeq ?? 0;
}

/** The newest signal that is stored; 0 where there is none. */
export function newestSeq(db: Database): number {
  const newest = db.query<{ seq: number | null }, []>("SELECT max(seq) AS seq FROM signals").get();
  return newest?.seq ?? 0;
}

export function insertRun(db: Database, run: Run): void {
  const { id, level, firstSeq, lastSeq, entries, seed } = run;
  db.query(
    `INSERT INTO dedupe_runs (id, level, first_seq, last_seq, entries, seed, fences, checksum)
     VALUES (?, ?, ?, ?, ?, ?, ?, ?)`,
  ).run(id, level, firstSeq, lastSeq, entries, seed, bytesOf(run.fences), checksumOf(run));
}

export function removeRuns(db: Database, runs: readonly Run[]): void {
  const remove = db.query("DELETE FROM dedupe_runs WHERE id = ?");
  for (const { id } of runs) remove.run(id);
}

function checksumOf({ id, level, firstSeq, lastSeq, entries, seed, fences }: Run): number {
  const facts = JSON.stringify([id, level, firstSeq, lastSeq, entries, seed]);
  return Bun.hash.crc32(Buffer.concat([Buffer.from(facts), bytesOf(fences)]));
}

function bytesOf(fences: Uint32Array): Uint8Array {
  return new Uint8Array(fences.buffer, fences.byteOffset, fences.byteLength);
}

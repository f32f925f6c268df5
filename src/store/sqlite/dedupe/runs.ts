/** The table `dedupe_runs`. */
import type { Database } from "bun:sqlite";
import { DamagedIndexError } from "../failures.ts";
import { BLOCK_ENTRIES } from "./blocks.ts";
import { Run, type RunRow } from "./run.ts";

/** Oldest first: each begins where the one before ends. Throws {@link DamagedIndexError}. */
export function readRuns(db: Database): Run[] {
  const rows = db
    .query<RunRow & { checksum: number }, []>("SELECT * FROM dedupe_runs ORDER BY first_seq")
    .all();
  let covered = 0;
  for (const row of rows) {
    const isWhole =
      row.checksum === checksumOf(row) &&
      row.fences.length === Math.ceil(row.entries / BLOCK_ENTRIES) * 4 &&
      row.seed === rows[0]?.seed;
    if (!isWhole) throw new DamagedIndexError(`run ${row.id} is not as it was written`);
    if (row.first_seq !== covered + 1) {
      throw new DamagedIndexError(`run ${row.id} does not begin where the one before ends`);
    }
    covered = row.last_seq;
  }
  return rows.map((row) => new Run(row, null));
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
  const fences = new Uint8Array(run.fences.buffer);
  const row = { id, level, first_seq: firstSeq, last_seq: lastSeq, entries, seed, fences };
  db.query(
    `INSERT INTO dedupe_runs (id, level, first_seq, last_seq, entries, seed, fences, checksum)
     VALUES (?, ?, ?, ?, ?, ?, ?, ?)`,
  ).run(id, level, firstSeq, lastSeq, entries, seed, fences, checksumOf(row));
}

export function removeRuns(db: Database, runs: readonly Run[]): void {
  const remove = db.query("DELETE FROM dedupe_runs WHERE id = ?");
  for (const { id } of runs) remove.run(id);
}

function checksumOf({ id, level, first_seq, last_seq, entries, seed, fences }: RunRow): number {
  const facts = JSON.stringify([id, level, first_seq, last_seq, entries, seed]);
  return Bun.hash.crc32(Buffer.concat([Buffer.from(facts), fences]));
}

/** The index as those see it who only read the database: without what the writer has in memory. */
import type { Database } from "bun:sqlite";
import { Blocks } from "./blocks.ts";
import { IdHash } from "./hash.ts";
import { nameOf } from "./hash.ts";
import { Run, type RunRow } from "./run.ts";

/** Oldest first. */
export function readRuns(db: Database): Run[] {
  const rows = db.query<RunRow, []>("SELECT * FROM dedupe_runs ORDER BY first_seq").all();
  return rows.map((row) => new Run(row, null));
}

/** The place of the signal of this desk with this id; null where there is none. One state of the database. */
export function findSeq(db: Database, deskId: number, clientSignalId: string): number | null {
  return db.transaction(() => {
    const runs = readRuns(db);
    const blocks = new Blocks(db);
    const hash = new IdHash(db).of(nameOf(deskId, clientSignalId));
    const candidates: number[] = [];
    for (const run of runs) run.find(blocks, hash, candidates);
    const inRun = db.query<{ seq: number }, [number, number, string]>(
      "SELECT seq FROM signals WHERE seq = ? AND desk_id = ? AND client_signal_id = ?",
    );
    for (const seq of candidates) {
      if (inRun.get(seq, deskId, clientSignalId) !== null) return seq;
    }
    const newer = db.query<{ seq: number }, [number, number, string]>(
      `SELECT seq FROM signals INDEXED BY signals_desk
       WHERE seq > ? AND desk_id = ? AND client_signal_id = ? LIMIT 1`,
    );
    return newer.get(runs.at(-1)?.lastSeq ?? 0, deskId, clientSignalId)?.seq ?? null;
  })();
}

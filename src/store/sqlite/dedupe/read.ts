/** The index as those see it who only read the database: without what the writer has in memory. */
import type { Database } from "bun:sqlite";
import { IdHash, nameOf } from "./hash.ts";
import { Parts } from "./parts.ts";
import { readRuns } from "./runs.ts";

/** The place of the desk's signal with this id; null where there is none. */
export function findSeq(db: Database, deskId: number, clientSignalId: string): number | null {
  // Of one state of the database.
  return db.transaction(
    () => findInRuns(db, deskId, clientSignalId) ?? findNewer(db, deskId, clientSignalId),
  )();
}

function findInRuns(db: Database, deskId: number, clientSignalId: string): number | null {
  const [first, ...others] = readRuns(db);
  if (first === undefined) return null;
  const blocks = new Parts(db, "dedupe_blocks");
  const hash = new IdHash(first.seed).of(nameOf(deskId, clientSignalId));
  const candidates: number[] = [];
  for (const run of [first, ...others]) run.find(blocks, hash, candidates);
  const is = db.query<{ seq: number }, [number, number, string]>(
    "SELECT seq FROM signals WHERE seq = ? AND desk_id = ? AND client_signal_id = ?",
  );
  return candidates.find((seq) => is.get(seq, deskId, clientSignalId) !== null) ?? null;
}

/** Among those that are in no run yet. */
function findNewer(db: Database, deskId: number, clientSignalId: string): number | null {
  const newer = db.query<{ seq: number }, [number, string]>(
    `SELECT seq FROM signals INDEXED BY signals_desk
     WHERE seq > (SELECT coalesce(max(last_seq), 0) FROM dedupe_runs)
       AND desk_id = ? AND client_signal_id = ? LIMIT 1`,
  );
  return newer.get(deskId, clientSignalId)?.seq ?? null;
}

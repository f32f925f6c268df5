/** Looks for damage within a time, however large a database is. */
import type { Database } from "bun:sqlite";
import type { Sample } from "../../../domain/storage/files.ts";
import { DamageError, explainFailure } from "../files/failures.ts";
import { problemOfTables } from "./read.ts";
import { compareSchema, describeDifferences } from "../files/schema.ts";
import { damagedSignals, POSSIBLE } from "../copies/verify.ts";

/** Rows that lie together: a few pages, so that a slow disk does not overrun the time by much. */
const CHUNK_ROWS = 64;
/** A prime that no number of chunks is a multiple of: steps of it come to every chunk once. */
const STRIDE = 2_147_483_647;

/**
 * Reads the other tables, then signals from random places, each with its entry in every index, until all were read
 * or the time is up. `read` opens the database, and may find damage, too.
 */
export async function sampleDatabase(
  path: string,
  milliseconds: number,
  read: (sample: (db: Database) => number) => Promise<number | null>,
): Promise<Sample> {
  try {
    const share = await read((db) => readSignals(db, path, milliseconds));
    return { share, damage: null };
  } catch (error) {
    const found = explainFailure(error, path);
    if (found instanceof DamageError) return { share: 0, damage: found.problem };
    throw found;
  }
}

/** Returns the share that was read. */
function readSignals(db: Database, path: string, milliseconds: number): number {
  const deadline = performance.now() + milliseconds;
  const differences = describeDifferences(compareSchema(db));
  if (differences.length > 0) throw new DamageError(path, differences.join("; "));
  // All others are small.
  const problem = problemOfTables(db, (table) => table !== "signals");
  if (problem !== null) throw new DamageError(path, problem);
  const newest = db.query<{ seq: number }, []>("SELECT max(seq) AS seq FROM signals").get();
  const isSound = db.query<{ ok: number }, [number, number]>(soundness(db));
  const chunks = Math.ceil((newest?.seq ?? 0) / CHUNK_ROWS);
  let chunk = Math.floor(Math.random() * chunks);
  let done = 0;
  for (; done < chunks && performance.now() < deadline; done += 1) {
    const from = chunk * CHUNK_ROWS + 1;
    // With the last row before, because only a row between two others is missed.
    if (isSound.get(from - 1, from + CHUNK_ROWS)?.ok !== 1) {
      throw new DamageError(path, `a signal from seq ${from} on, or its entry in an index`);
    }
    const [damaged] = damagedSignals(db, [from, from + CHUNK_ROWS - 1], 1);
    if (damaged !== undefined) throw new DamageError(path, damaged);
    chunk = (chunk + STRIDE) % chunks;
  }
  return chunks === 0 ? 1 : done / chunks;
}

/** Whether signals of a range of `seq` have possible values and are in every index, and no other is. */
function soundness(db: Database): string {
  const indexes = db
    .query<{ name: string; columns: string }, []>(
      `SELECT list.name, group_concat('o."' || info.name || '" IS s."' || info.name || '"', ' AND ') AS columns
       FROM pragma_index_list('signals') AS list, pragma_index_info(list.name) AS info
       WHERE NOT list.partial GROUP BY list.name HAVING count(*) = count(info.name)`,
    )
    .all();
  const entries = indexes.map(
    ({ name, columns }) =>
      `EXISTS (SELECT 1 FROM signals AS o INDEXED BY "${name}" WHERE ${columns} AND o.seq = s.seq)`,
  );
  const isRowSound = [POSSIBLE, ...entries].map((condition) => `(${condition})`).join(" AND ");
  // Ids rise with `seq`, so a range of one is a range of the other.
  return `WITH found AS (
      SELECT ifnull(min(${isRowSound}), 1) AS sound, count(*) AS rows, min(id) AS low, max(id) AS high
      FROM signals AS s NOT INDEXED WHERE s.seq BETWEEN ? AND ?)
    SELECT sound AND rows = (SELECT count(*) FROM signals INDEXED BY sqlite_autoindex_signals_1
      WHERE id BETWEEN low AND high) AS ok FROM found`;
}

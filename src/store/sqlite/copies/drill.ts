/** Tries a backup: restores it where nothing uses it, verifies it, and compares it with the database. */
import type { Database } from "bun:sqlite";
import { dirname } from "node:path";
import { UserError } from "../../../lib/errors.ts";
import type { Drilled, Verification } from "../../../domain/storage/files.ts";
import { DamageError } from "../files/failures.ts";
import { requireDatabase } from "../files/folder.ts";
import { readDatabase } from "../files/open.ts";
import { copyIn, createPrivateFolder, removeAbandoned } from "../files/private-folder.ts";
import { explainCopyFailure, makeCopy } from "./copy.ts";

/** A transaction each: the server's log can restart between two. */
const SIGNALS_AT_ONCE = 65_536;

/** Besides signals. Their rows are never deleted, and these columns never change. */
const KEPT = [
  ["desks", ["uid", "created_at"]],
  ["api_keys", ["id", "scope", "key_hash", "created_at"]],
  ["members", ["id", "created_at"]],
  ["audit", ["id", "at", "action"]],
] as const;

/**
 * Restores as `restore` does in a folder without a database, into a new `folder`, which is removed again. Throws
 * `UserError` if the backup cannot be restored, is not sound, or has not what the database has. Blocks this thread: see
 * `copying.ts`.
 */
export async function drillBackup(file: string, dataDir: string, folder: string): Promise<Drilled> {
  try {
    requireDatabase(dataDir);
    removeAbandoned(dirname(folder));
    using _folder = createPrivateFolder(folder);
    const copy = copyIn(folder);
    const { signals, newest_id } = restore(file, copy);
    const found = await readDatabase(dataDir, (db) => {
      db.query("ATTACH ? AS copy").run(copy);
      return { difference: differenceIn(db, signals), newer_signals: countNewer(db) };
    });
    const { difference, newer_signals } = found ?? { difference: "it is empty", newer_signals: 0 };
    if (difference === null) return { signals, newest_id, newer_signals };
    throw new UserError(
      `${file} is sound, but differs from the database: ${difference}. One of the two is damaged, or the database was restored from another backup.`,
    );
  } catch (error) {
    throw explainCopyFailure(error, file, folder);
  }
}

function restore(file: string, copy: string): Verification {
  try {
    return makeCopy(file, copy);
  } catch (error) {
    const explained = explainCopyFailure(error, file, copy);
    if (!(explained instanceof DamageError)) throw explained;
    throw new UserError(
      `${file} is damaged (${explained.problem}): do not restore it, use another backup.`,
    );
  }
}

/** In words; null: all that the backup has is in the database as it is. */
function differenceIn(db: Database, signals: number): string | null {
  for (const [table, columns] of KEPT) {
    const isSame = columns.map((column) => `own.${column} = copied.${column}`).join(" AND ");
    const missing = db
      .query<{ id: string }, []>(
        `SELECT ${columns[0]} AS id FROM copy.${table} AS copied
         WHERE NOT EXISTS (SELECT 1 FROM main.${table} AS own WHERE ${isSame}) LIMIT 1`,
      )
      .get();
    if (missing !== null) return `in ${table}, ${missing.id} is not as in the database`;
  }
  return differenceInSignals(db, signals);
}

/** Compares every value of every signal. */
function differenceInSignals(db: Database, signals: number): string | null {
  const isSame = db
    .query<{ name: string }, []>("SELECT name FROM pragma_table_info('signals', 'main')")
    .all()
    .map(({ name }) => `own.${name} IS copied.${name}`);
  const compare = db.query<{ rows: number; different: number | null }, [number, number]>(
    `SELECT count(*) AS rows, min(iif(${isSame.join(" AND ")}, NULL, own.seq)) AS different
     FROM main.signals AS own LEFT JOIN copy.signals AS copied ON copied.seq = own.seq
     WHERE own.seq > ? AND own.seq <= ?`,
  );
  const last = newestIn("copy", db);
  let compared = 0;
  for (let from = 0; from < last; from += SIGNALS_AT_ONCE) {
    const found = compare.get(from, Math.min(from + SIGNALS_AT_ONCE, last));
    if (found?.different != null) return describeSignal(db, found.different);
    compared += found?.rows ?? 0;
  }
  if (compared === signals) return null;
  return `it has ${signals} signals where the database has ${compared}`;
}

function countNewer(db: Database): number {
  return newestIn("main", db) - newestIn("copy", db);
}

function newestIn(schema: "main" | "copy", db: Database): number {
  const sql = `SELECT ifnull(max(seq), 0) AS seq FROM ${schema}.signals`;
  return db.query<{ seq: number }, []>(sql).get()?.seq ?? 0;
}

function describeSignal(db: Database, seq: number): string {
  const [own, copied] = ["main", "copy"].map((schema) =>
    db.query<Row, [number]>(`SELECT * FROM ${schema}.signals WHERE seq = ?`).get(seq),
  );
  if (!copied) return `it lacks signal ${String(own?.["id"])}`;
  const fields = Object.keys(copied).filter((name) => !Bun.deepEquals(copied[name], own?.[name]));
  return `of signal ${String(own?.["id"])}, it has another ${fields.join(", ")}`;
}

type Row = Readonly<Record<string, unknown>>;

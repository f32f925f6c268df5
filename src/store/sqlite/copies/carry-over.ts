/**
 * Carries over what a restore must not undo: what has ended, and what was made since the backup. The two
 * databases share a history up to some moment, and each may have continued without the other. So rows are
 * matched by identity (an id, an audit row's content), not by row numbers, which may stand for different rows.
 */
import type { Database } from "bun:sqlite";
import type { KeysTaken } from "../../../domain/storage/files.ts";
import { isDamage } from "../files/failures.ts";

/** Every table except the signals and the audit, each after the tables that it refers to. */
export const MERGED_TABLES = ["desks", "api_keys", "members", "invitations", "passkeys"] as const;
type MergedTable = (typeof MERGED_TABLES)[number];

/** Call it in a transaction, with the previous database attached as `previous`. Throws what SQLite throws. */
export function carryOver(db: Database): KeysTaken {
  if (isOtherServer(db)) return { failure: "it has none of the backup's desks" };
  const keys = countKeys(db);
  pairDesks(db);
  freeAddresses(db);
  for (const table of MERGED_TABLES) merge(db, table);
  mergeAudit(db);
  return keys;
}

/** Counts the signals that only the previous database has; null if they are damaged. */
export function countMissing(db: Database): number | null {
  const sql = `SELECT count(*) AS missing FROM previous.signals AS previous
    WHERE NOT EXISTS (SELECT 1 FROM main.signals AS restored WHERE restored.id = previous.id)`;
  try {
    return (db.query(sql).get() as { missing: number }).missing;
  } catch (error) {
    if (isDamage(error)) return null;
    throw error;
  }
}

function isOtherServer(db: Database): boolean {
  const sql = `SELECT 1 FROM main.desks WHERE NOT EXISTS
    (SELECT 1 FROM main.desks JOIN previous.desks USING (uid)) LIMIT 1`;
  return db.query(sql).get() !== null;
}

function countKeys(db: Database): KeysTaken {
  return db
    .query(
      `SELECT count(*) FILTER (WHERE restored.id IS NULL) AS minted,
         count(*) FILTER (WHERE restored.revoked_at IS NULL AND restored.id IS NOT NULL
           AND previous.revoked_at IS NOT NULL) AS revoked,
         (SELECT count(*) FROM main.api_keys
          WHERE id NOT IN (SELECT id FROM previous.api_keys)) AS only_in_backup,
         NULL AS failure
       FROM previous.api_keys AS previous LEFT JOIN main.api_keys AS restored USING (id)`,
    )
    .get() as KeysTaken;
}

/** Two desks that were created with one name since the databases parted become one. */
function pairDesks(db: Database): void {
  db.run(
    `UPDATE main.desks AS restored SET uid = previous.uid FROM previous.desks AS previous
     WHERE previous.name = restored.name
       AND previous.uid NOT IN (SELECT uid FROM main.desks)
       AND restored.uid NOT IN (SELECT uid FROM previous.desks)`,
  );
}

/** For a desk whose name another has in the backup: 63 characters at most, and unique. */
const OTHER_NAME = "substr(name, 1, 27) || '.restored-' || lower(uid)";

/**
 * If both databases have invited one address since they parted, the previous database's member stays;
 * unless the backup knows that member as removed, and so is the newer one.
 */
function freeAddresses(db: Database): void {
  db.run(
    `UPDATE main.members AS restored SET removed_at = previous.created_at
     FROM previous.members AS previous
     WHERE previous.email = restored.email AND previous.id <> restored.id
       AND previous.removed_at IS NULL AND restored.removed_at IS NULL
       AND NOT EXISTS
         (SELECT 1 FROM main.members AS same WHERE same.id = previous.id AND same.removed_at IS NOT NULL)`,
  );
}

/** Adds the rows of the previous database; of rows that both have, what cannot be undone. */
function merge(db: Database, table: MergedTable): void {
  // Desks get new row numbers.
  const isKept = (column: string): boolean => table !== "desks" || column !== "id";
  const columns = columnsOf(db, table).filter(isKept);
  const values = columns.map((column) => addedValue(table, column));
  const updates = columns.flatMap((column) => {
    const value = mergedValue(column);
    return value === null ? [] : [`${column} = ${value}`];
  });
  db.run(
    `INSERT INTO main.${table} (${columns.join(", ")})
     SELECT ${values.join(", ")} FROM previous.${table} AS previous
     WHERE true ORDER BY previous.id
     ON CONFLICT (${table === "desks" ? "uid" : "id"}) DO UPDATE SET ${updates.join(", ")}`,
  );
}

function columnsOf(db: Database, table: string): string[] {
  const sql = "SELECT name FROM pragma_table_info(?, 'main')";
  const columns = db.query<{ name: string }, [string]>(sql).all(table);
  return columns.map(({ name }) => name);
}

function addedValue(table: MergedTable, column: string): string {
  if (table !== "desks" || column !== "name") return restoredValue(column);
  return `iif(EXISTS (SELECT 1 FROM main.desks AS restored
    WHERE restored.name = previous.name AND restored.uid <> previous.uid), ${OTHER_NAME}, name)`;
}

/** Reads a previous value; a desk's row number becomes that of the restored database. */
function restoredValue(column: string): string {
  if (column !== "desk_id") return `previous.${column}`;
  return `(SELECT restored.id FROM main.desks AS restored
    JOIN previous.desks AS known USING (uid) WHERE known.id = previous.desk_id)`;
}

/**
 * Either database may be the newer one. What has ended or is forbidden in one of them stays so; counts and
 * times of use take the greater value. Any other column is as in the backup.
 */
const chosen: Readonly<Record<string, "min" | "max">> = {
  archived_at: "min",
  passkeys_required: "max",
  joined_at: "min",
  expires_at: "min",
  revoked_at: "min",
  removed_at: "min",
  spent_at: "min",
  signed_out_at: "max",
  last_used_at: "max",
  counter: "max",
  successor_id: "max", // the later one: ids rise
  differing_duplicates: "max",
};

function mergedValue(column: string): string | null {
  // A new password ends every session: the later end has the newer password. One password that is locked in
  // one of the databases stays locked: `!` sorts before every hash.
  if (column === "password_hash") {
    return `CASE WHEN ltrim(${column}, '!') = ltrim(excluded.${column}, '!') THEN min(${column}, excluded.${column})
      WHEN excluded.signed_out_at >= signed_out_at THEN excluded.${column} ELSE ${column} END`;
  }
  const choice = chosen[column];
  // SQLite's `min` and `max` are null if one of the two is.
  return choice === undefined
    ? null
    : `${choice}(ifnull(${column}, excluded.${column}), ifnull(excluded.${column}, ${column}))`;
}

/** Appends missing rows. Equal rows are kept as often as the database with more of them has them. */
function mergeAudit(db: Database): void {
  const columns = columnsOf(db, "audit").filter((column) => column !== "id");
  const names = columns.join(", ");
  db.run(
    `INSERT INTO main.audit (${names})
     WITH added AS (
       SELECT *, json_array(${names}) AS content,
         row_number() OVER (PARTITION BY json_array(${names}) ORDER BY id) AS nth
       FROM (SELECT id, ${columns.map((name) => `${restoredValue(name)} AS ${name}`).join(", ")}
         FROM previous.audit AS previous)
     ), present AS MATERIALIZED (
       SELECT json_array(${names}) AS content, count(*) AS times FROM main.audit GROUP BY content
     )
     SELECT ${names} FROM added LEFT JOIN present USING (content)
     WHERE nth > ifnull(times, 0) ORDER BY added.id`,
  );
}

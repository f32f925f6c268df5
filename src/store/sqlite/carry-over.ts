/**
 * Carries over what a restore must not undo: the desks, keys, members and audit of the previous database.
 * The two databases share a history up to some moment, and each may have continued without the other. So
 * rows are matched by identity (an id, an audit row's content), not by row numbers, which may stand for
 * different rows.
 */
import type { Database } from "bun:sqlite";
import type { KeysTaken } from "../../domain/storage.ts";

/** Every table except the signals and the audit, each after the tables that it refers to. */
export const MERGED_TABLES = ["desks", "api_keys", "members", "invitations", "passkeys"] as const;

/** Call it in a transaction, with the previous database attached as `previous`. Throws what SQLite throws. */
export function carryOver(db: Database): KeysTaken {
  if (isOtherServer(db)) return { failure: "it has none of the backup's desks" };
  const keys = countKeys(db);
  pairDesks(db);
  freeAddresses(db);
  for (const table of MERGED_TABLES) merge(db, table);
  mergeAudit(db);
  archiveAsLastDone(db);
  return { ...keys, failure: null };
}

/** Two look-ups: rows are never deleted, so `seq` has no gaps. */
export function countMissing(db: Database): number {
  const sql = `SELECT ifnull((SELECT max(seq) FROM previous.signals), 0) - ifnull((SELECT seq FROM previous.signals
    WHERE id <= ifnull((SELECT max(id) FROM main.signals), '') ORDER BY id DESC LIMIT 1), 0) AS missing`;
  return (db.query(sql).get() as { missing: number }).missing;
}

function isOtherServer(db: Database): boolean {
  const sql = `SELECT 1 FROM main.desks WHERE NOT EXISTS
    (SELECT 1 FROM main.desks JOIN previous.desks USING (uid)) LIMIT 1`;
  return db.query(sql).get() !== null;
}

function countKeys(db: Database): { minted: number; revoked: number } {
  return db
    .query(
      `SELECT count(*) FILTER (WHERE restored.id IS NULL) AS minted,
         count(*) FILTER (WHERE restored.revoked_at IS NULL AND restored.id IS NOT NULL
           AND previous.revoked_at IS NOT NULL) AS revoked
       FROM previous.api_keys AS previous LEFT JOIN main.api_keys AS restored USING (id)`,
    )
    .get() as { minted: number; revoked: number };
}

/**
 * Two desks that were created with one name since the databases parted become one. The previous database
 * has the names: first, every restored desk leaves a name that another may get.
 */
function pairDesks(db: Database): void {
  db.run(
    `UPDATE main.desks AS restored SET uid = previous.uid FROM previous.desks AS previous
     WHERE previous.name = restored.name
       AND previous.uid NOT IN (SELECT uid FROM main.desks)
       AND restored.uid NOT IN (SELECT uid FROM previous.desks)`,
  );
  db.run(
    `UPDATE main.desks SET name = name || '.restored-' || id
     WHERE uid IN (SELECT uid FROM previous.desks) OR name IN (SELECT name FROM previous.desks)`,
  );
}

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

/** Adds the rows of the previous database, and merges those that both have. */
function merge(db: Database, table: (typeof MERGED_TABLES)[number]): void {
  // Desks get new row numbers.
  const isKept = (column: string): boolean => table !== "desks" || column !== "id";
  const columns = columnsOf(db, table).filter(isKept);
  const updates = columns.map((column) => `${column} = ${mergedValue(column)}`);
  db.run(
    `INSERT INTO main.${table} (${columns.join(", ")})
     SELECT ${columns.map(restoredValue).join(", ")} FROM previous.${table} AS previous
     WHERE true ORDER BY previous.id
     ON CONFLICT (${table === "desks" ? "uid" : "id"}) DO UPDATE SET ${updates.join(", ")}`,
  );
}

function columnsOf(db: Database, table: string): string[] {
  const sql = "SELECT name FROM pragma_table_info(?, 'main')";
  return db
    .query<{ name: string }, [string]>(sql)
    .all(table)
    .map(({ name }) => name);
}

/** Reads a previous value; a desk's row number becomes that of the restored database. */
function restoredValue(column: string): string {
  if (column !== "desk_id") return `previous.${column}`;
  return `(SELECT restored.id FROM main.desks AS restored
    JOIN previous.desks AS known USING (uid) WHERE known.id = previous.desk_id)`;
}

/**
 * Either database may be the newer one. What one of them revoked, removed, spent, required or let
 * expire stays so; counts and times of use take the greater value. Everything else comes from the previous one.
 */
const chosen: Readonly<Record<string, "min" | "max">> = {
  created_at: "min",
  joined_at: "min",
  expires_at: "min",
  revoked_at: "min",
  removed_at: "min",
  spent_at: "min",
  signed_out_at: "max",
  last_used_at: "max",
  counter: "max",
  differing_duplicates: "max",
  passkeys_required: "max",
};

function mergedValue(column: string): string {
  const choice = chosen[column];
  if (choice !== undefined) {
    // SQLite's `min` and `max` are null if one of the two is.
    return `${choice}(ifnull(${column}, excluded.${column}), ifnull(excluded.${column}, ${column}))`;
  }
  // A new password ends every session: the later end has the newer password.
  if (column === "password_hash") {
    return `iif(excluded.signed_out_at >= signed_out_at, excluded.${column}, ${column})`;
  }
  return `excluded.${column}`;
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

/** Unlike revoking and removing, archiving can be undone: the last change of either database counts. */
function archiveAsLastDone(db: Database): void {
  db.run(
    `UPDATE main.desks SET archived_at =
       (SELECT iif(action = 'desk.archived', at, NULL) FROM main.audit
        WHERE desk_id = desks.id AND action IN ('desk.archived', 'desk.unarchived')
        ORDER BY at DESC, id DESC LIMIT 1)`,
  );
}

/**
 * Carries over what a restore must not undo: what has ended, and keys minted since the backup. The rest comes from the
 * backup. The two databases share a history up to some moment, and each may have continued without the other. So rows
 * are matched by identity, not by row numbers, which may stand for different rows.
 */
import type { Database } from "bun:sqlite";
import type { KeysTaken } from "../../../domain/storage/files.ts";
import { isDamage } from "../files/failures.ts";

/** Times at which a row ends, with the column that identifies it: the earlier one holds. */
const ENDS = [
  ["desks", "uid", "archived_at"],
  ["api_keys", "id", "expires_at"],
  ["api_keys", "id", "revoked_at"],
  ["members", "id", "removed_at"],
  ["invitations", "id", "spent_at"],
  ["passkeys", "id", "removed_at"],
  ["notice_places", "id", "removed_at"],
] as const;

/** Call it in a transaction, with the previous database attached as `previous`. Throws what SQLite throws. */
export function carryOver(db: Database): KeysTaken {
  if (isOtherServer(db)) return { failure: "it has none of the backup's desks" };
  const keys = countKeys(db);
  add(db, "desks", "uid", { id: "NULL", name: FREE_NAME });
  add(db, "api_keys", "id", { desk_id: DESK_ID });
  keepEnds(db);
  keepSuccessors(db);
  keepLocks(db);
  keepSilent(db);
  keepViewers(db);
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

/** Another desk may have the name in the backup. 63 characters at most, and unique. */
const FREE_NAME = `iif(name IN (SELECT name FROM main.desks),
  substr(name, 1, 27) || '.restored-' || lower(uid), name)`;

const DESK_ID = `(SELECT restored.id FROM main.desks AS restored
  JOIN previous.desks AS known USING (uid) WHERE known.id = previous.desk_id)`;

/** Adds the rows that the backup does not have, with other `values` for some columns. */
function add(db: Database, table: string, id: string, values: Record<string, string>): void {
  const sql = "SELECT name FROM pragma_table_info(?, 'main')";
  const columns = db.query<{ name: string }, [string]>(sql).all(table);
  const names = columns.map(({ name }) => name);
  db.run(
    `INSERT INTO main.${table} (${names.join(", ")})
     SELECT ${names.map((name) => values[name] ?? name).join(", ")} FROM previous.${table} AS previous
     WHERE ${id} NOT IN (SELECT ${id} FROM main.${table}) ORDER BY previous.id`,
  );
}

function keepEnds(db: Database): void {
  for (const [table, id, column] of ENDS) {
    db.run(
      `UPDATE main.${table} AS restored SET ${column} = previous.${column}
       FROM previous.${table} AS previous
       WHERE previous.${id} = restored.${id}
         AND previous.${column} < ifnull(restored.${column}, previous.${column} + 1)`,
    );
  }
}

/** The later one: ids rise. */
function keepSuccessors(db: Database): void {
  db.run(
    `UPDATE main.api_keys AS restored SET successor_id = previous.successor_id
     FROM previous.api_keys AS previous
     WHERE previous.id = restored.id AND previous.successor_id > ifnull(restored.successor_id, '')`,
  );
}

/** A password that was locked stays locked, unless the backup has another one. */
function keepLocks(db: Database): void {
  db.run(
    `UPDATE main.members AS restored SET password_hash = previous.password_hash
     FROM previous.members AS previous
     WHERE previous.id = restored.id AND previous.password_hash = '!' || restored.password_hash`,
  );
}

/** A desk that keeps nothing of what requests sent stays so. */
function keepSilent(db: Database): void {
  db.run(
    `UPDATE main.desks SET keeps_sent = 0
     WHERE uid IN (SELECT uid FROM previous.desks WHERE keeps_sent = 0)`,
  );
}

/** Who was made a viewer does not get back what they may no longer do. */
function keepViewers(db: Database): void {
  db.run(
    `UPDATE main.members SET role = 'viewer'
     WHERE id IN (SELECT id FROM previous.members WHERE role = 'viewer')`,
  );
}

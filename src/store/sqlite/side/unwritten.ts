/**
 * Activity goes into tables in memory first, and from there into the file: what a full disk refuses stays in
 * memory, and is read like the rest. Both have the tables of `activity.sql`: the schemas `unwritten` and `main`.
 */
import type { Database } from "bun:sqlite";
import activitySql from "./activity.sql" with { type: "text" };

export type ActivitySchema = "main" | "unwritten";

/** How a row is added to one with the same key, per table. */
export const merging = {
  buckets: `stored = stored + excluded.stored, duplicate = duplicate + excluded.duplicate,
    rejected = rejected + excluded.rejected, unauthorized = unauthorized + excluded.unauthorized,
    last_at = max(last_at, excluded.last_at)`,
  reject_reasons: `count = count + excluded.count, first_at = min(first_at, excluded.first_at),
    last_at = max(last_at, excluded.last_at), latest_id = max(latest_id, excluded.latest_id)`,
  rejects: "at = excluded.at",
  reject_counts: "count = count + excluded.count",
  differing: `count = count + excluded.count, last_at = max(last_at, excluded.last_at),
    fields = (SELECT json_group_array(DISTINCT value)
      FROM (SELECT value FROM json_each(fields) UNION ALL SELECT value FROM json_each(excluded.fields)))`,
  repeats: `duplicates = duplicates + excluded.duplicates, differing = differing + excluded.differing,
    last_at = max(last_at, excluded.last_at),
    differs = (SELECT json_group_array(DISTINCT value)
      FROM (SELECT value FROM json_each(differs) UNION ALL SELECT value FROM json_each(excluded.differs)))`,
} as const;

const tables = Object.keys(merging) as (keyof typeof merging)[];

/** Queries that name no schema read both: a temporary view hides a table of the same name. */
export function attachUnwritten(db: Database): void {
  db.run("PRAGMA temp_store = MEMORY");
  db.run("ATTACH ':memory:' AS unwritten");
  db.run(activitySql.replaceAll("CREATE TABLE ", "CREATE TABLE unwritten."));
  for (const table of tables) {
    db.run(`CREATE TEMP VIEW ${table} AS
      SELECT * FROM main.${table} UNION ALL SELECT * FROM unwritten.${table}`);
  }
}

export function hasUnwritten(db: Database): boolean {
  const some = tables.map((table) => `EXISTS (SELECT 1 FROM unwritten.${table})`);
  return db.query<{ found: 0 | 1 }, []>(`SELECT ${some.join(" OR ")} AS found`).get()?.found === 1;
}

/** In a transaction of the caller's. */
export function moveUnwritten(db: Database): void {
  for (const table of tables) {
    db.run(`INSERT INTO main.${table} SELECT * FROM unwritten.${table} WHERE true
      ON CONFLICT DO UPDATE SET ${merging[table]}`);
  }
  // Those that refer to others first.
  for (const table of tables.toReversed()) db.run(`DELETE FROM unwritten.${table}`);
}

/**
 * Activity goes into tables in memory first, and from there into the file: what a full disk refuses stays in
 * memory, and is read like the rest. Both have the tables of `activity.sql`: the schemas `unwritten` and `main`.
 */
import type { Database } from "bun:sqlite";
import { merging } from "../../records/activity/merging.ts";
import type { Tx } from "../../records/sql.ts";
import activitySql from "./activity.sql" with { type: "text" };

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

export async function moveUnwritten(tx: Tx): Promise<void> {
  for (const table of tables) {
    await tx.run(
      `INSERT INTO main.${table} AS kept SELECT * FROM unwritten.${table} WHERE true ${merging[table]}`,
    );
  }
  // Those that refer to others first.
  for (const table of tables.toReversed()) await tx.run(`DELETE FROM unwritten.${table}`);
}

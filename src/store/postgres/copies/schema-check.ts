/** Compares the tables of a database with those of `schema.postgresql.sql`. */
import schemaSql from "../../../../schema.postgresql.sql" with { type: "text" };
import type { Pg } from "../connect.ts";
import { hasCode } from "../failures.ts";

/** In the current schema, whose name the definitions may have or not. */
const OBJECTS = `
  WITH ours AS (
    SELECT pg_class.oid, relname FROM pg_class JOIN pg_namespace AS space ON space.oid = relnamespace
    WHERE nspname = current_schema() AND relkind = 'r'
  ), objects AS (
    SELECT relname, 'column ' || attname || ' ' || format_type(atttypid, atttypmod)
      || coalesce(' COLLATE ' || collname, '') || CASE WHEN attnotnull THEN ' NOT NULL' ELSE '' END
      || CASE attidentity WHEN '' THEN '' ELSE ' IDENTITY' END
      || coalesce(' DEFAULT ' || pg_get_expr(adbin, adrelid), '') AS definition, false AS may_be_added
    FROM ours JOIN pg_attribute ON attrelid = ours.oid AND attnum > 0 AND NOT attisdropped
      LEFT JOIN pg_attrdef ON adrelid = attrelid AND adnum = attnum
      LEFT JOIN pg_collation ON pg_collation.oid = attcollation
    UNION ALL
    SELECT relname, pg_get_indexdef(indexrelid) || CASE WHEN indisvalid AND indisready THEN '' ELSE ' (not valid)' END,
      NOT indisunique
    FROM ours JOIN pg_index ON indrelid = ours.oid
    UNION ALL
    SELECT relname, 'constraint ' || conname || ' ' || pg_get_constraintdef(pg_constraint.oid), false
    FROM ours JOIN pg_constraint ON conrelid = ours.oid
    UNION ALL
    SELECT relname, pg_get_triggerdef(pg_trigger.oid) || CASE tgenabled WHEN 'D' THEN ' (disabled)' ELSE '' END, false
    FROM ours JOIN pg_trigger ON tgrelid = ours.oid AND NOT tgisinternal
  )
  SELECT relname AS table, replace(definition, current_schema() || '.', '') AS definition, may_be_added AS "mayBeAdded"
  FROM objects ORDER BY 1, 2`;

interface SchemaObject {
  readonly table: string;
  readonly definition: string;
  /** An index that only makes something faster. */
  readonly mayBeAdded: boolean;
}

/**
 * Returns what is missing, changed or added. Makes the tables in a transaction that is rolled back; null if this user may
 * not do that.
 */
export async function schemaProblems(pg: Pg): Promise<string[] | null> {
  const found = await pg.unsafe<SchemaObject[]>(OBJECTS);
  const expected = await expectedObjects(pg);
  if (expected === null) return null;
  const tables = new Set(expected.map(({ table }) => table));
  const [have, want] = [found, expected].map((all) => new Set(all.map(textOf)));
  return [
    ...expected
      .map(textOf)
      .filter((text) => !have?.has(text))
      .map((text) => `missing or changed: ${text}`),
    ...found
      .filter(({ table, mayBeAdded }) => tables.has(table) && !mayBeAdded)
      .map(textOf)
      .filter((text) => !want?.has(text))
      .map((text) => `not of Signalbox: ${text}`),
  ];
}

function textOf({ table, definition }: SchemaObject): string {
  return `${table}: ${definition}`;
}

async function expectedObjects(pg: Pg): Promise<readonly SchemaObject[] | null> {
  const rollBack = new Error("roll back");
  let objects: readonly SchemaObject[] = [];
  try {
    await pg.begin(async (tx) => {
      await tx.unsafe(
        "CREATE SCHEMA signalbox_expected; SET LOCAL search_path = signalbox_expected",
      );
      await tx.unsafe(schemaSql);
      objects = await tx.unsafe<SchemaObject[]>(OBJECTS);
      throw rollBack;
    });
  } catch (error) {
    if (hasCode(error, /^42501$/)) return null;
    if (error !== rollBack) throw error;
  }
  return objects;
}

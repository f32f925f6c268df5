/** Compares a database's schema with the one that this version of Signalbox creates. */
import { Database } from "bun:sqlite";
import { currentSchema, readVersion, schemaVersion } from "./migrate.ts";

export interface SchemaObject {
  readonly type: string;
  readonly name: string;
  readonly table: string;
  /** Null for the indexes that SQLite makes for `UNIQUE` and `PRIMARY KEY`. */
  readonly sql: string | null;
}

/** The tables that Litestream adds to every database that it replicates. Empty or one row; nothing reads them. */
const LITESTREAM = [
  "CREATE TABLE _litestream_seq (id INTEGER PRIMARY KEY, seq INTEGER)",
  "CREATE TABLE _litestream_lock (id INTEGER)",
];

export interface SchemaDifferences {
  /** Whatever Signalbox did not create: unknown objects, and known ones with another definition. */
  readonly foreign: readonly SchemaObject[];
  readonly missing: readonly SchemaObject[];
}

/** Reads the definitions and nothing that they define. `database`: main, or an attached one. */
export function compareSchema(
  db: Database,
  database: "main" | "source" = "main",
): SchemaDifferences {
  const found = objectsOf(db, database);
  const expected = expectedObjects(readVersion(db, database));
  const allowed = new Set([...expected, ...objectsCreatedBy(LITESTREAM)].map(fingerprint));
  // Each once: SQLite itself never has an object twice.
  const foreign = found.filter((object) => !allowed.delete(fingerprint(object)));
  const there = new Set(found.map(fingerprint));
  const missing = expected.filter((object) => !there.has(fingerprint(object)));
  return { foreign, missing };
}

/** What a database of this version has; 0 stands for the newest one. */
export function expectedObjects(version: number): SchemaObject[] {
  const { sql, first, upgrades } = currentSchema;
  const isCurrent = version === 0 || version === schemaVersion(currentSchema);
  return objectsCreatedBy(isCurrent ? [sql] : [first, ...upgrades.slice(0, version - 1)]);
}

function objectsCreatedBy(statements: readonly string[]): SchemaObject[] {
  const db = new Database(":memory:");
  try {
    for (const sql of statements) db.run(sql);
    return objectsOf(db, "main");
  } finally {
    db.close();
  }
}

function objectsOf(db: Database, database: "main" | "source"): SchemaObject[] {
  return db
    .query<SchemaObject, []>(
      `SELECT type, name, tbl_name AS "table", sql FROM ${database}.sqlite_schema ORDER BY rowid`,
    )
    .all();
}

function fingerprint({ type, name, table, sql }: SchemaObject): string {
  return JSON.stringify([type, name, table, sql === null ? null : withoutComments(sql)]);
}

/**
 * The definition without comments and layout, which differ between versions of `schema.sql`, and where
 * `ALTER TABLE` has added a column. Only what SQLite takes for white space is: anything else, and
 * everything in quotes, has to be the same.
 */
function withoutComments(sql: string): string {
  return sql
    .replaceAll(/'(?:[^']|'')*'|(?:--[^\n]*|[ \t\n\f\r])+/g, (part) =>
      part.startsWith("'") ? part : " ",
    )
    .replaceAll(/'(?:[^']|'')*'| ?([(),]) ?/g, (part, mark?: string) => mark ?? part);
}

/** For a message: one line for what was added, changed and is missing; empty where nothing differs. */
export function describeDifferences({ foreign, missing }: SchemaDifferences): string[] {
  const wanted = new Set(missing.map(keyOf));
  const found = new Set(foreign.map(keyOf));
  return [
    line(
      "not created by Signalbox",
      foreign.filter((object) => !wanted.has(keyOf(object))),
    ),
    line(
      "changed",
      foreign.filter((object) => wanted.has(keyOf(object))),
    ),
    line(
      "missing",
      missing.filter((object) => object.sql !== null && !found.has(keyOf(object))),
    ),
  ].filter((text) => text !== "");
}

function keyOf({ type, name }: SchemaObject): string {
  return JSON.stringify([type, name]);
}

function line(what: string, objects: readonly SchemaObject[]): string {
  return objects.length === 0 ? "" : `${what}: ${describeObjects(objects)}`;
}

const NAMED_MAX = 5;
const NAME_CHARACTERS_MAX = 60;

/** For a message: the first few by type and name, on one line. */
export function describeObjects(objects: readonly SchemaObject[]): string {
  const named = objects
    .slice(0, NAMED_MAX)
    .map(({ type, name }) => printable(`${shorten(type)} ${JSON.stringify(shorten(name))}`));
  const more = objects.length - named.length;
  return named.join(", ") + (more > 0 ? ` and ${more} more` : "");
}

function shorten(text: unknown): string {
  const whole = String(text);
  return whole.length <= NAME_CHARACTERS_MAX ? whole : `${whole.slice(0, NAME_CHARACTERS_MAX)}…`;
}

function printable(text: string): string {
  return text.replaceAll(
    /[^ -~…]/g,
    (character) => String.raw`\u` + character.charCodeAt(0).toString(16).padStart(4, "0"),
  );
}

/** Every table or column name that is not a literal goes into SQL through this. */
export function quoteName(name: string): string {
  return `"${name.replaceAll('"', '""')}"`;
}

/** Compares a database's schema with the one that this version of Signalbox creates. */
import { Database } from "bun:sqlite";
import { showHidden } from "../../../lib/text/hidden.ts";
import { currentSchema, readVersion, schemaVersion } from "./migrate.ts";

interface SchemaObject {
  readonly type: string;
  readonly name: string;
  readonly table: string;
  /** Null for the indexes that SQLite makes for `UNIQUE` and `PRIMARY KEY`. */
  readonly sql: string | null;
}

/** Tables that Litestream adds to every database that it replicates: empty or one row; nothing reads them. */
const LITESTREAM = [
  "CREATE TABLE _litestream_seq (id INTEGER PRIMARY KEY, seq INTEGER)",
  "CREATE TABLE _litestream_lock (id INTEGER)",
];

interface SchemaDifferences {
  /** Unknown objects, and known ones with another definition. */
  readonly foreign: readonly SchemaObject[];
  readonly missing: readonly SchemaObject[];
}

/** Reads only the definitions, never the tables. */
export function compareSchema(db: Database): SchemaDifferences {
  const expected = expectedObjects(readVersion(db));
  const unmatched = new Set([...expected, ...objectsCreatedBy(LITESTREAM)].map(fingerprint));
  // `delete`, so that a second copy of a definition is foreign: SQLite never creates two.
  const foreign = objectsOf(db).filter((object) => !unmatched.delete(fingerprint(object)));
  const missing = expected.filter((object) => unmatched.has(fingerprint(object)));
  return { foreign, missing };
}

/** Returns the objects of a version; 0 stands for the newest. */
function expectedObjects(version: number): SchemaObject[] {
  const { sql, first, upgrades } = currentSchema;
  const isCurrent = version === 0 || version === schemaVersion(currentSchema);
  return objectsCreatedBy(isCurrent ? [sql] : [first, ...upgrades.slice(0, version - 1)]);
}

function objectsCreatedBy(statements: readonly string[]): SchemaObject[] {
  using db = new Database(":memory:");
  for (const sql of statements) db.run(sql);
  return objectsOf(db);
}

function objectsOf(db: Database): SchemaObject[] {
  return db
    .query<SchemaObject, []>(
      'SELECT type, name, tbl_name AS "table", sql FROM sqlite_schema ORDER BY rowid',
    )
    .all();
}

function fingerprint({ type, name, table, sql }: SchemaObject): string {
  return JSON.stringify([type, name, table, sql === null ? null : withoutComments(sql)]);
}

/**
 * The definition without comments and layout, which differ between versions of `schema.sql` and after
 * `ALTER TABLE ADD COLUMN`. Removes only what SQLite treats as white space, and nothing in quotes.
 */
function withoutComments(sql: string): string {
  return sql
    .replaceAll(/'(?:[^']|'')*'|(?:--[^\n]*|[ \t\n\f\r])+/g, (part) =>
      part.startsWith("'") ? part : " ",
    )
    .replaceAll(/'(?:[^']|'')*'| ?([(),]) ?/g, (part, mark?: string) => mark ?? part);
}

/** Returns one line each for added, changed and missing objects. Empty if nothing differs. */
export function describeDifferences({ foreign, missing }: SchemaDifferences): string[] {
  const wanted = new Set(missing.map(keyOf));
  const found = new Set(foreign.map(keyOf));
  const parts = {
    "not created by Signalbox": foreign.filter((object) => !wanted.has(keyOf(object))),
    changed: foreign.filter((object) => wanted.has(keyOf(object))),
    missing: missing.filter((object) => object.sql !== null && !found.has(keyOf(object))),
  };
  return Object.entries(parts)
    .filter(([, objects]) => objects.length > 0)
    .map(([what, objects]) => `${what}: ${describeObjects(objects)}`);
}

function keyOf({ type, name }: SchemaObject): string {
  return JSON.stringify([type, name]);
}

const NAMED_MAX = 5;
const NAME_CHARACTERS_MAX = 60;

/** Names the first few objects, on one line. */
export function describeObjects(objects: readonly SchemaObject[]): string {
  const named = objects
    .slice(0, NAMED_MAX)
    .map(({ type, name }) => showHidden(`${shorten(type)} ${JSON.stringify(shorten(name))}`));
  const more = objects.length - named.length;
  return named.join(", ") + (more > 0 ? ` and ${more} more` : "");
}

/** A foreign schema may have anything for a name, even a number. */
function shorten(text: unknown): string {
  const whole = String(text);
  return whole.length <= NAME_CHARACTERS_MAX ? whole : `${whole.slice(0, NAME_CHARACTERS_MAX)}…`;
}

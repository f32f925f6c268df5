/** Hostile backups: nothing in their schema is ever executed. */
import { Database } from "bun:sqlite";
import { describe, expect, test } from "bun:test";
import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { copyDatabase } from "../../src/store/sqlite/copies/copy.ts";
import { verifyDatabase } from "../../src/store/sqlite/copies/verify.ts";
import { cliHere, expectRefusal } from "../kit/cli.ts";
import { edit, newDataDir, seed } from "./_databases.ts";
import { query, temporaryFolder } from "../kit/setup.ts";

/**
 * Changes a definition in the bytes of the file, as an attacker can and SQL cannot. The length stays the
 * same: what is added is taken from a comment, what is removed becomes white space.
 */
function rewrite(path: string, name: string, from: string, to: string): void {
  const db = new Database(path, { readonly: true });
  const row = db.query("SELECT sql FROM sqlite_schema WHERE name = ?").get(name);
  db.close();
  const { sql } = row as { sql: string };
  const added = Buffer.byteLength(to) - Buffer.byteLength(from);
  expect(sql).toContain(from);
  const changed = sql.replace(from, to + " ".repeat(Math.max(0, -added)));
  const comment = new RegExp(`(--[^\\n]*)[^\\n]{${Math.max(0, added)}}\\n`);
  expect(changed).toMatch(comment);
  const fitted = changed.replace(comment, "$1\n");
  const bytes = readFileSync(path);
  expect(Buffer.byteLength(fitted)).toBe(Buffer.byteLength(sql));
  // SQLite moves definitions to other pages and leaves their bytes behind.
  for (let at = bytes.indexOf(sql); at >= 0; at = bytes.indexOf(sql)) bytes.write(fitted, at);
  writeFileSync(path, bytes);
}

const quoted = (name: string): string => `"${name.replaceAll('"', '""')}"`;

const INJECTION =
  "desks SELECT * FROM source.desks WHERE 0; COMMIT; VACUUM main INTO 'TARGET'; BEGIN; --";

/** What is done to a sound backup, and what the refusal names. `TARGET`: a file that must not appear. */
const hostile: Record<string, [names: string, ...statements: string[]]> = {
  "a table whose name is an injected statement": [
    'table "desks SELECT * FROM source.desks',
    `CREATE TABLE ${quoted(INJECTION)} (id INTEGER)`,
  ],
  "an index whose name is a statement": [
    'index "x; VACUUM INTO',
    `CREATE INDEX ${quoted("x; VACUUM INTO 'TARGET'; --")} ON desks (name)`,
  ],
  "a view": ['view "report"', "CREATE VIEW report AS SELECT * FROM desks"],
  "an endless view in place of a table": [
    'view "passkeys"',
    "DROP TABLE passkeys",
    "CREATE VIEW passkeys AS WITH RECURSIVE n (id) AS (SELECT 1 UNION ALL SELECT id + 1 FROM n) SELECT id FROM n",
  ],
  "a trigger": [
    'trigger "revive"',
    "CREATE TRIGGER revive AFTER INSERT ON signals BEGIN UPDATE api_keys SET revoked_at = NULL; END",
  ],
  "a virtual table": ['table "search"', "CREATE VIRTUAL TABLE search USING fts5(text)"],
  "an index on an expression": ['index "slow"', "CREATE INDEX slow ON desks (hex(zeroblob(id)))"],
  "a partial index in place of ours": [
    'index "signals_desk"',
    "DROP INDEX signals_desk",
    "CREATE INDEX signals_desk ON signals (desk_id) WHERE desk_id > 1",
  ],
  "an index with another collation": [
    'index "api_keys_desk"',
    "DROP INDEX api_keys_desk",
    "CREATE INDEX api_keys_desk ON api_keys (desk_id COLLATE NOCASE)",
  ],
  "a column": ['table "desks"', "ALTER TABLE desks ADD COLUMN note TEXT"],
  "a generated column": [
    'table "desks"',
    "ALTER TABLE desks ADD COLUMN note TEXT AS (hex(zeroblob(id)))",
  ],
  "statistics that mislead the planner": ['table "sqlite_stat1"', "ANALYZE"],
  "another definition of Litestream's table": [
    'table "_litestream_lock"',
    "CREATE TABLE _litestream_lock (id INTEGER, other TEXT)",
  ],
  "a long name with line breaks and an escape sequence": [
    String.raw`table "a\n\u001b[2Jbbb`,
    `CREATE TABLE ${quoted(`a\n\u001b[2J${"b".repeat(5_000)}`)} (id INTEGER)`,
  ],
  "no version": ['table "x"', "CREATE TABLE x (id)", "PRAGMA user_version = 0"],
};

/** Definitions that only the bytes of the file can have: table, from, to. */
const rewritten: [name: string, table: string, from: string, to: string][] = [
  [
    "a CHECK that calls a function",
    "desks",
    "NOT NULL UNIQUE",
    "NOT NULL UNIQUE CHECK (length(zeroblob(9)) = 9)",
  ],
  ["a missing CHECK", "api_keys", " CHECK (length(key_hash) = 32)", ""],
  ["another default value", "desks", "DEFAULT 0", "DEFAULT (random())"],
  ["a table that is not STRICT", "audit", ") STRICT", ")"],
];

function applyHostile(path: string, name: string): { names: string; target: string } {
  const [names = "", ...statements] = hostile[name] ?? [];
  const target = join(temporaryFolder(), "written");
  edit(path, ...statements.map((sql) => sql.replaceAll("TARGET", target)));
  return { names, target };
}

/** A sound backup in a folder of its own. */
async function seedBackup(): Promise<{ file: string; folder: string }> {
  const folder = temporaryFolder();
  const file = join(folder, "backup.db");
  copyDatabase((await seed({ signals: 50 })).path, file);
  return { file, folder };
}

function contentOfFolder(folder: string): [string, string][] {
  return readdirSync(folder)
    .filter((name) => name !== "serve.lock")
    .toSorted()
    .map((name) => [name, Bun.hash(readFileSync(join(folder, name))).toString(16)]);
}

/** Verifying it, which restore does first, names what is wrong. */
function expectRefused(file: string, names: string, target: string): void {
  const { ok, checks } = verifyDatabase(file);
  expect({ ok, schema: checks.schema.ok }).toEqual({ ok: false, schema: false });
  expect(checks.schema.detail).toContain(names);
  expect(checks.schema.detail).toMatch(/^[^\n]{1,1000}$/);
  expect(existsSync(target)).toBe(false);
}

describe("verify and restore refuse a backup with", () => {
  test.each(Object.keys(hostile))("%s", async (name) => {
    const { file } = await seedBackup();
    const { names, target } = applyHostile(file, name);
    expectRefused(file, names, target);
  });

  test.each(rewritten)("%s", async (_name, table, from, to) => {
    const { file } = await seedBackup();
    rewrite(file, table, from, to);
    expectRefused(file, `table "${table}"`, join(file, "none"));
  });

  test("such a table, and restore changes nothing", async () => {
    const { file } = await seedBackup();
    const { names, target } = applyHostile(file, "a table whose name is an injected statement");
    const { dataDir } = await seed({ signals: 5 });
    const folders = [dataDir, join(file, "..")];
    const before = folders.map(contentOfFolder);
    await expectRefusal(["restore", file, "--data", dataDir, "--force"], names);
    expect(folders.map(contentOfFolder)).toEqual(before);
    const none = newDataDir();
    await expectRefusal(["restore", file, "--data", none], names);
    expect([none, target].map(existsSync)).toEqual([false, false]);
  });
});

test.each(["a table whose name is an injected statement", "a view", "a column"])(
  "backup refuses a live database with %s",
  async (name) => {
    const { dataDir, path } = await seed({ signals: 50 });
    const { names, target } = applyHostile(path, name);
    const folder = temporaryFolder();
    const { code, stderr } = await cliHere(["backup", join(folder, "b.db"), "--data", dataDir]);
    expect(stderr).toContain(names);
    expect(stderr).toContain("cannot be copied: undo the change");
    expect({ code, files: readdirSync(folder) }).toEqual({ code: 1, files: [] });
    expect(existsSync(target)).toBe(false);
  },
);

test("verify, backup and restore accept Litestream's tables", async () => {
  const { path } = await seed({ signals: 50 });
  // As Litestream 0.3 and 0.5 create them.
  edit(
    path,
    "CREATE TABLE IF NOT EXISTS _litestream_seq (id INTEGER PRIMARY KEY, seq INTEGER);",
    "CREATE TABLE IF NOT EXISTS _litestream_lock (id INTEGER);",
    "INSERT INTO _litestream_seq VALUES (1, 700)",
  );
  expect(await cliHere(["verify", path])).toMatchObject({ code: 0, stderr: "" });
  const dataDir = newDataDir();
  const file = join(temporaryFolder(), "copy.db");
  expect(copyDatabase(path, file)).toMatchObject({ ok: true });
  expect(await cliHere(["restore", file, "--data", dataDir])).toMatchObject({ code: 0 });
  expect(query(dataDir, "SELECT count(*) AS n FROM signals")).toEqual([{ n: 50 }]);
});

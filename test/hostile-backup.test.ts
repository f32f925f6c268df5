/** Hostile backups: nothing in their schema is ever executed. */
import { Database } from "bun:sqlite";
import { describe, expect, setDefaultTimeout, test } from "bun:test";
import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { copyDatabase } from "../src/store/sqlite/copy.ts";
import { verifyDatabase } from "../src/store/sqlite/verify.ts";
import { cli } from "./_cli.ts";
import { newDataDir, seed } from "./_databases.ts";
import { query, temporaryFolder } from "./_setup.ts";

setDefaultTimeout(120_000);

function run(path: string, ...statements: string[]): void {
  const db = new Database(path);
  for (const sql of statements) db.run(sql);
  db.close();
}

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

/** What is done to a sound backup, and what the refusal names. `target`: a file that must not appear. */
const hostile: [string, (path: string, target: string) => void, string][] = [
  [
    "a table whose name ends a statement of ours and begins another",
    (path, target) => {
      const name = `desks SELECT * FROM source.desks WHERE 0; COMMIT; VACUUM main INTO '${target}'; BEGIN; --`;
      run(path, `CREATE TABLE ${quoted(name)} (id INTEGER)`);
    },
    'table "desks SELECT * FROM source.desks',
  ],
  [
    "an index whose name is a statement",
    (path, target) =>
      run(path, `CREATE INDEX ${quoted(`x; VACUUM INTO '${target}'; --`)} ON desks (name)`),
    'index "x; VACUUM INTO',
  ],
  ["a view", (path) => run(path, "CREATE VIEW report AS SELECT * FROM desks"), 'view "report"'],
  [
    "a view in the place of a table",
    (path) =>
      run(
        path,
        "DROP TABLE passkeys",
        "CREATE VIEW passkeys AS WITH RECURSIVE n (id) AS (SELECT 1 UNION ALL SELECT id + 1 FROM n) SELECT id FROM n",
      ),
    'view "passkeys"',
  ],
  [
    "a trigger",
    (path) =>
      run(
        path,
        "CREATE TRIGGER revive AFTER INSERT ON signals BEGIN UPDATE api_keys SET revoked_at = NULL; END",
      ),
    'trigger "revive"',
  ],
  [
    "a virtual table",
    (path) => run(path, "CREATE VIRTUAL TABLE search USING fts5(text)"),
    'table "search"',
  ],
  [
    "an index on an expression",
    (path) => run(path, "CREATE INDEX slow ON desks (hex(zeroblob(id)))"),
    'index "slow"',
  ],
  [
    "an index of ours that leaves rows out",
    (path) =>
      run(
        path,
        "DROP INDEX signals_desk",
        "CREATE INDEX signals_desk ON signals (desk_id) WHERE desk_id > 1",
      ),
    'index "signals_desk"',
  ],
  [
    "an index of ours with a collation",
    (path) =>
      run(
        path,
        "DROP INDEX api_keys_desk",
        "CREATE INDEX api_keys_desk ON api_keys (desk_id COLLATE NOCASE)",
      ),
    'index "api_keys_desk"',
  ],
  ["a column", (path) => run(path, "ALTER TABLE desks ADD COLUMN note TEXT"), 'table "desks"'],
  [
    "a generated column",
    (path) => run(path, "ALTER TABLE desks ADD COLUMN note TEXT AS (hex(zeroblob(id)))"),
    'table "desks"',
  ],
  [
    "a CHECK that calls a function",
    (path) =>
      rewrite(path, "desks", "NOT NULL UNIQUE", "NOT NULL UNIQUE CHECK (length(zeroblob(9)) = 9)"),
    'table "desks"',
  ],
  [
    "a CHECK that is gone",
    (path) => rewrite(path, "api_keys", " CHECK (length(key_hash) = 32)", ""),
    'table "api_keys"',
  ],
  [
    "another default value",
    (path) => rewrite(path, "desks", "DEFAULT 0", "DEFAULT (random())"),
    'table "desks"',
  ],
  [
    "a table that takes any type",
    (path) => rewrite(path, "audit", ") STRICT", ")"),
    'table "audit"',
  ],
  ["statistics that mislead the planner", (path) => run(path, "ANALYZE"), 'table "sqlite_stat1"'],
  [
    "Litestream's table with another definition",
    (path) => run(path, "CREATE TABLE _litestream_lock (id INTEGER, other TEXT)"),
    'table "_litestream_lock"',
  ],
  [
    "a name with line breaks and an escape sequence, longer than a screen",
    (path) => run(path, `CREATE TABLE ${quoted(`a\n\u001b[2J${"b".repeat(5_000)}`)} (id INTEGER)`),
    String.raw`table "a\n\u001b[2Jbbb`,
  ],
  [
    "no version",
    (path) => run(path, "CREATE TABLE x (id)", "PRAGMA user_version = 0"),
    'table "x"',
  ],
];

/** A backup and the folder that it lies in alone. */
function seedBackup(): { file: string; folder: string } {
  const folder = temporaryFolder();
  const file = join(folder, "backup.db");
  copyDatabase(seed({ signals: 50 }).path, file);
  return { file, folder };
}

function contentOfFolder(folder: string): [string, string][] {
  return readdirSync(folder)
    .filter((name) => name !== "serve.lock")
    .toSorted()
    .map((name) => [name, Bun.hash(readFileSync(join(folder, name))).toString(16)]);
}

interface Hostile {
  readonly file: string;
  readonly folder: string;
  readonly target: string;
  readonly names: string;
}

function makeHostile([, change, names]: (typeof hostile)[number]): Hostile {
  const backup = seedBackup();
  const target = join(temporaryFolder(), "written");
  change(backup.file, target);
  return { ...backup, target, names };
}

/** The command fails in one line that names what is wrong, and no file was written or changed. */
async function expectRefused(
  { file, folder, target, names }: Hostile,
  command: "verify" | "restore",
): Promise<void> {
  const { dataDir } = seed({ signals: 5 });
  const before = [contentOfFolder(dataDir), contentOfFolder(folder)];
  const args = command === "verify" ? [] : ["--data", dataDir, "--force"];
  const { code, stdout, stderr } = await cli([command, file, ...args]);
  expect(stdout + stderr).toContain(names);
  expect(stderr).toMatch(/^signalbox: [^\n]{1,1000}\n$/);
  expect(code).toBe(1);
  expect([contentOfFolder(dataDir), contentOfFolder(folder)]).toEqual(before);
  expect(existsSync(target)).toBe(false);
}

describe("verify and restore refuse a backup with", () => {
  test.each(hostile)("%s", async (name, change, names) => {
    const made = makeHostile([name, change, names]);
    const { ok, checks } = verifyDatabase(made.file);
    expect({ ok, schema: checks.schema.ok }).toEqual({ ok: false, schema: false });
    expect(checks.schema.detail).toContain(made.names);
    await expectRefused(made, "restore");
  });

  const [injecting] = hostile as [(typeof hostile)[number]];

  test("such a table, when it is only looked at", async () => {
    await expectRefused(makeHostile(injecting), "verify");
  });

  test("such a table into an empty folder, which is not created", async () => {
    const { file } = makeHostile(injecting);
    const dataDir = newDataDir();
    expect(await cli(["restore", file, "--data", dataDir])).toMatchObject({ code: 1 });
    expect(existsSync(dataDir)).toBe(false);
  });
});

test.each([hostile[0], hostile[2], hostile[9]].flatMap((row) => (row === undefined ? [] : [row])))(
  "a backup is refused if the live database has %s",
  async (_name, change, names) => {
    const { dataDir, path } = seed({ signals: 50 });
    const target = join(temporaryFolder(), "written");
    change(path, target);
    const folder = temporaryFolder();
    const args = ["backup", join(folder, "copy.db"), "--data", dataDir];
    const { code, stderr } = await cli(args);
    expect(stderr).toContain(names);
    expect(stderr).toContain("cannot be copied: undo the change");
    expect({ code, files: readdirSync(folder) }).toEqual({ code: 1, files: [] });
    expect(existsSync(target)).toBe(false);
  },
);

test("verify, backup and restore accept Litestream's tables", async () => {
  const { path } = seed({ signals: 50 });
  // As Litestream 0.3 and 0.5 create them.
  run(
    path,
    "CREATE TABLE IF NOT EXISTS _litestream_seq (id INTEGER PRIMARY KEY, seq INTEGER);",
    "CREATE TABLE IF NOT EXISTS _litestream_lock (id INTEGER);",
    "INSERT INTO _litestream_seq VALUES (1, 700)",
  );
  expect(await cli(["verify", path])).toMatchObject({ code: 0, stderr: "" });
  const dataDir = newDataDir();
  const file = join(temporaryFolder(), "copy.db");
  expect(copyDatabase(path, file)).toMatchObject({ ok: true });
  expect(await cli(["restore", file, "--data", dataDir])).toMatchObject({ code: 0 });
  expect(query(dataDir, "SELECT count(*) AS n FROM signals")).toEqual([{ n: 50 }]);
});

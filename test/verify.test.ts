import { Database } from "bun:sqlite";
import { describe, expect, setDefaultTimeout, test } from "bun:test";
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { copyDatabase } from "../src/store/sqlite/copy.ts";
import { type Verification, verifyDatabase } from "../src/store/sqlite/verify.ts";
import { cli } from "./_cli.ts";
import { newDataDir, seed, seededUlid, storeTwice } from "./_databases.ts";
import { temporaryFolder } from "./_setup.ts";

setDefaultTimeout(120_000);

const PAGE_BYTES = 4_096;

/** The names of the checks that do not hold. */
function failing({ checks }: Verification): string[] {
  return Object.entries(checks)
    .filter(([, { ok }]) => !ok)
    .map(([name]) => name);
}

function change(path: string, ...statements: string[]): void {
  const db = new Database(path);
  for (const sql of statements) db.run(sql);
  db.close();
}

/** The first leaf page whose cells have a text in them: of a table (13) or of an index (10). */
function changePage(path: string, kind: 13 | 10, text: string, work: (page: Buffer) => void): void {
  const bytes = readFileSync(path);
  for (let at = PAGE_BYTES; at < bytes.length; at += PAGE_BYTES) {
    const page = bytes.subarray(at, at + PAGE_BYTES);
    if (page[0] !== kind || !page.includes(text)) continue;
    work(page);
    writeFileSync(path, bytes);
    return;
  }
  throw new Error("no such page");
}

/** The last of its cells is not seen any more (https://sqlite.org/fileformat2.html#b_tree_pages). */
function dropLastCell(page: Buffer): void {
  page.writeUInt16BE(page.readUInt16BE(3) - 1, 3);
}

describe("verify finds a database sound", () => {
  test("of a stopped server, says so to people and to programs, and changes nothing", async () => {
    const { dataDir, path } = seed({ signals: 1_000 });
    const before = readFileSync(path);
    expect(await cli(["verify", "--data", dataDir])).toEqual({
      code: 0,
      stdout: `schema: ok\nintegrity: ok\nforeign_keys: ok\nids_rising: ok\nvalues: ok\n1000 signals, the newest ${seededUlid(1_000)}, database version 1\n`,
      stderr: "",
    });
    const { code, stdout, stderr } = await cli(["verify", "--json", "--data", dataDir]);
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    const sound = { ok: true, detail: "ok" };
    expect(JSON.parse(stdout)).toEqual({
      ok: true,
      file: path,
      version: 1,
      signals: 1_000,
      newest_id: seededUlid(1_000),
      checks: {
        schema: sound,
        integrity: sound,
        foreign_keys: sound,
        ids_rising: sound,
        values: sound,
      },
    });
    expect(readFileSync(path).equals(before)).toBe(true);
  });

  test("of a server that was killed, with what is in its log", async () => {
    const { path, dataDir } = seed({ signals: 500, logged: 40 });
    const log = readFileSync(`${path}-wal`);
    const { code, stdout } = await cli(["verify", "--data", dataDir]);
    expect(stdout).toContain("540 signals");
    expect(code).toBe(0);
    expect(readFileSync(`${path}-wal`).equals(log)).toBe(true);
  });

  test("of a backup", async () => {
    const file = join(temporaryFolder(), "backup.db");
    copyDatabase(seed({ signals: 20 }).path, file);
    expect(await cli(["verify", file])).toMatchObject({ code: 0, stderr: "" });
    expect(readdirSync(join(file, ".."))).toEqual(["backup.db"]);
  });

  test("without a signal in it", () => {
    const verification = verifyDatabase(seed({ signals: 0 }).path);
    expect(verification).toMatchObject({ ok: true, signals: 0, newest_id: null });
  });
});

/** Each check, and what makes it fail: alone where that is possible. */
const damages: [name: string, damage: (path: string) => void, fails: string[], says: RegExp][] = [
  [
    "a signal is stored twice",
    (path) => storeTwice(path, [3, 900]),
    ["integrity"],
    /non-unique entry in index signals_client_signal_id/,
  ],
  [
    "a signal is gone from the table",
    (path) => changePage(path, 13, '"number":700,', dropLastCell),
    ["integrity"],
    /row 700 missing|missing from index|wrong # of entries/,
  ],
  [
    "a page of zeros",
    (path) => changePage(path, 13, '"number":700,', (page) => void page.fill(0)),
    ["integrity", "foreign_keys", "ids_rising", "values"],
    /malformed/,
  ],
  [
    "a signal of no key",
    (path) =>
      change(path, "PRAGMA foreign_keys = OFF", "UPDATE signals SET key_id = 'x' WHERE seq = 9"),
    ["foreign_keys"],
    /row 9 of signals has no row in api_keys/,
  ],
  [
    "a signal of no desk",
    (path) =>
      change(path, "PRAGMA foreign_keys = OFF", "UPDATE signals SET desk_id = 5 WHERE seq = 9"),
    ["foreign_keys", "values"],
    /row 9 of signals has no row in desks/,
  ],
  [
    "ids in another order than the signals",
    (path) => change(path, `UPDATE signals SET id = '${seededUlid(5_000)}' WHERE seq = 9`),
    ["ids_rising"],
    /the id of seq 10 is not greater than the one before/,
  ],
  [
    "an id of another length",
    (path) => change(path, "UPDATE signals SET id = id || '0' WHERE seq = 1000"),
    ["ids_rising"],
    /seq 1000/,
  ],
  [
    "a signal of another desk's key",
    (path) =>
      change(
        path,
        "INSERT INTO desks (name, created_at) VALUES ('beta', 1)",
        "UPDATE signals SET desk_id = 2 WHERE seq = 9",
      ),
    ["values"],
    /seq 9 has a value that no signal can have/,
  ],
  ...[
    "side = 'opem'",
    "source = 'venue_4'",
    "type = 'crypt'",
    "direction = 'lonh'",
    "symbol = ''",
    `symbol = '${"x".repeat(513)}'`,
    "symbol = 'BTC' || char(9)",
    "symbol = 'BTC' || char(128)",
    "symbol = 'BTC' || char(0) || 'USDT'",
    "received_at = -1",
    "signal_time = 9007199254740992",
    "price = 9e999",
    "quantity = -9e999",
    "metadata = '{\"a\":1'",
    "metadata = '[]'",
    `metadata = '{"a":"${"x".repeat(65_536)}"}'`,
  ].map((assignment): (typeof damages)[number] => [
    `a signal with ${assignment.slice(0, 40)}`,
    (path) =>
      change(
        path,
        "PRAGMA ignore_check_constraints = ON",
        `UPDATE signals SET ${assignment} WHERE seq = 9`,
      ),
    ["values"],
    /values: failing \(seq 9 has a value that no signal can have\)/,
  ]),
  ...["", "x".repeat(256)].map((id): (typeof damages)[number] => [
    `a client_signal_id of ${id.length} characters`,
    (path) => change(path, `UPDATE signals SET client_signal_id = '${id}' WHERE seq = 9`),
    ["values"],
    /values: failing \(seq 9 has a value that no signal can have\)/,
  ]),
];

/** Nothing else is checked then. */
const otherSchemas: [name: string, change: (path: string) => void, says: string][] = [
  [
    "no unique index",
    (path) => change(path, "DROP INDEX signals_client_signal_id"),
    'missing: index "signals_client_signal_id"',
  ],
  [
    "an index that is missing",
    (path) => change(path, "DROP INDEX signals_desk"),
    'missing: index "signals_desk"',
  ],
  [
    "an index that was changed",
    (path) =>
      change(path, "DROP INDEX signals_desk", "CREATE INDEX signals_desk ON signals (key_id)"),
    'changed: index "signals_desk"',
  ],
  [
    "a column too few",
    (path) => change(path, "ALTER TABLE signals DROP COLUMN quantity"),
    'changed: table "signals"',
  ],
  ["no version", (path) => change(path, "PRAGMA user_version = 0"), "it has no version"],
  [
    "several differences",
    (path) => change(path, "DROP INDEX signals_desk", "CREATE TABLE notes (text)"),
    'not created by Signalbox: table "notes"; missing: index "signals_desk"',
  ],
];

describe("verify fails, with what is wrong and what to do, where there is", () => {
  test.each(damages)("%s", async (_name, damage, fails, says) => {
    const { dataDir, path } = seed({ signals: 1_000 });
    damage(path);
    expect(failing(verifyDatabase(path))).toEqual(fails);
    const { code, stdout, stderr } = await cli(["verify", "--data", dataDir]);
    expect(stdout).toMatch(says);
    expect(stderr).toBe(
      `signalbox: ${path} is damaged: stop the server, and restore a backup, which keeps the present database, with: signalbox restore FILE --force --data ${dataDir}\n`,
    );
    expect(code).toBe(1);
    const backup = await cli(["verify", path]);
    expect(backup).toEqual({
      code: 1,
      stdout,
      stderr: `signalbox: ${path} is damaged: do not restore this backup, use another one.\n`,
    });
    const json = await cli(["verify", "--json", "--data", dataDir]);
    expect(json.code).toBe(1);
    expect(failing(JSON.parse(json.stdout) as Verification)).toEqual(fails);
  });

  test.each(otherSchemas)("another schema: %s", async (_name, work, says) => {
    const { path } = seed({ signals: 10 });
    work(path);
    const { code, stdout, stderr } = await cli(["verify", path]);
    const notChecked = ["integrity", "foreign_keys", "ids_rising", "values"].map(
      (name) => `${name}: failing (not checked, because of the schema)\n`,
    );
    expect(stdout).toBe(`schema: failing (${says})\n${notChecked.join("")}`);
    expect(stderr).toBe(
      `signalbox: ${path} does not have Signalbox's schema, and nothing else in it was read. If you changed it with another program, undo that; if not: do not restore this backup, use another one.\n`,
    );
    expect(code).toBe(1);
  });

  test("nothing to look at", async () => {
    const dataDir = newDataDir();
    const { code, stdout, stderr } = await cli(["verify", "--data", dataDir]);
    expect({ code, stdout }).toEqual({ code: 1, stdout: "" });
    expect(stderr).toBe(
      `signalbox: There is no database at ${join(dataDir, "signalbox.db")}: name its folder with --data DIR.\n`,
    );
    const folder = join(temporaryFolder(), "folder");
    mkdirSync(folder);
    for (const file of [folder, "/dev/null"]) {
      const refused = await cli(["verify", file]);
      expect(refused.stderr).toMatch(/^signalbox: [^\n]+\n$/);
      expect(refused).toMatchObject({ code: 1, stdout: "" });
    }
    expect((await cli(["verify", folder])).stderr).toContain(
      `${folder} is a folder: verify its database with: signalbox verify --data ${folder}`,
    );
  });

  test("something that is not ours, or of a newer version", async () => {
    const file = join(temporaryFolder(), "file.db");
    writeFileSync(file, "dear diary");
    expect((await cli(["verify", file])).stderr).toContain("is not a Signalbox database");
    const { path } = seed({ signals: 1 });
    change(path, "PRAGMA user_version = 99");
    const { code, stderr } = await cli(["verify", path]);
    expect(stderr).toContain("written by a newer signalbox (database version 99;");
    expect(code).toBe(1);
  });

  test("damage that SQLite has several lines about, in one", async () => {
    const { path } = seed({ signals: 1 });
    const bytes = readFileSync(path);
    // A quote that nothing closes, in the definition of the table, and in what a page has left of it.
    const name = "metadata         TEXT";
    for (let at = bytes.indexOf(name); at >= 0; at = bytes.indexOf(name)) {
      bytes[at] = '"'.charCodeAt(0);
    }
    writeFileSync(path, bytes);
    const { code, stdout, stderr } = await cli(["verify", path]);
    expect({ code, stdout }).toEqual({ code: 1, stdout: "" });
    expect(stderr).toMatch(
      /^signalbox: [^\n]+ is damaged \(malformed database schema[^\n]+\): do not restore this backup, use another one\.\n$/,
    );
  });
});

test("control characters in names, labels and e-mails fail verify and are printed escaped", async () => {
  const { dataDir, path } = seed({ signals: 1 });
  change(
    path,
    "UPDATE api_keys SET label = 'a' || char(27) || '[2J' || char(10) || char(155) || 'b'",
    "UPDATE desks SET name = name || char(27)",
    "INSERT INTO members (id, desk_id, email, created_at) SELECT 'm', id, 'a' || char(0) || 'b', 0 FROM desks LIMIT 1",
  );
  const verification = verifyDatabase(path);
  expect(failing(verification)).toEqual(["values"]);
  for (const column of ["name", "label", "email"]) {
    expect(verification.checks.values.detail).toContain(`a control character in its ${column}`);
  }
  const listed = await cli(["key", "list", "--data", dataDir]);
  expect(listed.stdout).toContain("a\\u001b[2J\\u000a\\u009bb");
  expect(listed.stdout.replaceAll("\n", "")).not.toMatch(/\p{Cc}/u);
  const { stdout } = await cli(["key", "list", "--json", "--data", dataDir]);
  expect(stdout.replaceAll("\n", "")).not.toMatch(/\p{Cc}/u);
  expect(JSON.parse(stdout)[0].label).toBe("a\u001b[2J\n\u009bb");
});

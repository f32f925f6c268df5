import { describe, expect, test } from "bun:test";
import { readdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { copyDatabase } from "../../src/store/sqlite/copies/copy.ts";
import { openDatabase } from "../../src/store/sqlite/files/open.ts";
import { BlockWriter } from "../../src/store/sqlite/append/blocks.ts";
import { verifyDatabase } from "../../src/store/sqlite/copies/verify.ts";
import { cliHere, expectRefusal, expectUsageError } from "../kit/cli.ts";
import {
  changePage,
  dropLastCell,
  edit,
  editSignals,
  newDataDir,
  seed,
  seededUlid,
  storeTwice,
} from "./_databases.ts";
import { openForDamage, temporaryFolder } from "../kit/setup.ts";

describe("verify succeeds for the database", () => {
  test("of a stopped server, as text and as JSON, and changes nothing", async () => {
    const { dataDir, path } = await seed({ signals: 1_000 });
    const before = readFileSync(path);
    expect(await cliHere(["verify", "--data", dataDir])).toEqual({
      code: 0,
      stdout: `schema: ok\nintegrity: ok\nforeign_keys: ok\nids_rising: ok\nblocks: ok\nvalues: ok\nhashes: ok\n1,000 signals, the newest ${seededUlid(1_000)}, database version 1\n`,
      stderr: "",
    });
    const { code, stdout, stderr } = await cliHere(["verify", "--json", "--data", dataDir]);
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
        blocks: sound,
        values: sound,
        hashes: sound,
      },
    });
    expect(readFileSync(path).equals(before)).toBe(true);
  });

  test("of a server that was killed, with what is in its log", async () => {
    const { path, dataDir } = await seed({ signals: 500, logged: 40 });
    const log = readFileSync(`${path}-wal`);
    const { code, stdout } = await cliHere(["verify", "--data", dataDir]);
    expect(stdout).toContain("540 signals");
    expect(code).toBe(0);
    expect(readFileSync(`${path}-wal`).equals(log)).toBe(true);
  });

  test("of a backup, and leaves no file beside it", async () => {
    const file = join(temporaryFolder(), "backup.db");
    copyDatabase((await seed({ signals: 20 })).path, file);
    expect(await cliHere(["verify", file])).toMatchObject({ code: 0, stderr: "" });
    expect(readdirSync(join(file, ".."))).toEqual(["backup.db"]);
  });

  test("with complete blocks, of which one was written after a rollback", async () => {
    const { dataDir, path } = await seed({ signals: 10_000 });
    const db = openForDamage(dataDir);
    const writer = new BlockWriter(db);
    db.run("BEGIN");
    writer.add([], 8_192);
    db.run("ROLLBACK");
    writer.add([], 10_000);
    expect(db.query("SELECT block FROM signal_blocks").values()).toEqual([[0], [1]]);
    db.close();
    expect(verifyDatabase(path)).toMatchObject({ ok: true });
    const damaged = openForDamage(dataDir);
    damaged.run(
      "UPDATE signal_blocks SET symbols = replace(symbols, 'BTC', 'ETH') WHERE block = 1",
    );
    expect(verifyDatabase(path).checks["blocks"]?.detail).toBe(
      "block 1 of signal_blocks lacks values of its signals",
    );
    damaged.run("DELETE FROM signal_blocks WHERE block = 0");
    damaged.run("UPDATE signal_blocks SET symbols = NULL");
    damaged.close();
    const { ok, checks } = verifyDatabase(path);
    expect([ok, checks["blocks"]?.detail]).toEqual([
      false,
      "a block before block 1 of signal_blocks is missing",
    ]);
  });

  test("without a signal in it", async () => {
    const verification = verifyDatabase((await seed({ signals: 0 })).path);
    expect(verification).toMatchObject({ ok: true, signals: 0, newest_id: null });
  });
});

interface Failure {
  readonly statements: string[];
  readonly fails: string[];
  readonly says: string;
}

function failure(fails: string[], says: string, ...statements: string[]): Failure {
  return { statements, fails, says };
}

const UNCHECKED = "PRAGMA ignore_check_constraints = ON";
const OTHER_DESK = "INSERT INTO desks (uid, name, created_at) VALUES ('u', 'beta', 1)";
const no = (parent: string): string => `row 9 of signals has no row in ${parent}`;
const IMPOSSIBLE = "seq 9 has a value that no signal can have";
const set = (assignment: string): string => `UPDATE signals SET ${assignment} WHERE seq = 9`;

const failures: Record<string, Failure> = {
  "a signal of no key": failure(["foreign_keys"], no("api_keys"), set("key_id = 'x'")),
  "a signal of no desk": failure(["foreign_keys", "values"], no("desks"), set("desk_id = 5")),
  "a signal of another desk's key": failure(["values"], IMPOSSIBLE, OTHER_DESK, set("desk_id = 2")),
  "a signal of a read key": failure(
    ["values"],
    IMPOSSIBLE,
    "INSERT INTO api_keys (id, scope, desk_id, key_hash, last4, created_at) VALUES ('r', 'read', 1, zeroblob(32), 'abcd', 1)",
    set("key_id = 'r'"),
  ),
  "a send key for all desks": failure(
    ["values"],
    "row 2 of api_keys has a scope that it cannot have",
    "PRAGMA ignore_check_constraints = ON",
    "INSERT INTO api_keys (id, scope, key_hash, last4, created_at) VALUES ('s', 'send', zeroblob(32), 'abcd', 1)",
  ),
  "ids in another order than the signals": failure(
    ["ids_rising"],
    "the id of seq 10 is not greater than the one before",
    set(`id = '${seededUlid(5_000)}'`),
  ),
  "a block that is not complete": failure(
    ["blocks"],
    "block 0 of signal_blocks does not match its signals",
    "INSERT INTO signal_blocks SELECT 0, min(received_at), max(received_at), count(*), NULL, NULL FROM signals",
  ),
  "an id of another length": failure(
    ["ids_rising", "values", "hashes"],
    "the id of seq 9",
    set("id = id || '0'"),
  ),
  "an id that is not a ULID": failure(
    ["values", "hashes"],
    "seq 100 has a value that no signal can have",
    "UPDATE signals SET id = '8' || substr(id, 2) WHERE seq = 100",
  ),
  ...Object.fromEntries(
    [
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
      "client_signal_id = ''",
      `client_signal_id = '${"x".repeat(256)}'`,
    ].map((assignment) => [
      `a signal with ${assignment.slice(0, 40)}`,
      failure(["values"], IMPOSSIBLE, UNCHECKED, set(assignment)),
    ]),
  ),
};

const NOT_CHECKED = [
  "integrity",
  "foreign_keys",
  "ids_rising",
  "blocks",
  "values",
  "hashes",
] as const;

function otherSchema(says: string, ...statements: string[]): Failure {
  return failure(["schema", ...NOT_CHECKED], says, ...statements);
}

const otherSchemas: Record<string, Failure> = {
  "an index that is missing": otherSchema(
    'missing: index "signals_client_signal_id"',
    "DROP INDEX signals_client_signal_id",
  ),
  "several differences": otherSchema(
    'not created by Signalbox: table "notes"; missing: index "signals_desk"',
    "DROP INDEX signals_desk",
    "CREATE TABLE notes (text)",
  ),
};

describe("verify fails if there is", () => {
  test.each(Object.entries({ ...failures, ...otherSchemas }))("%s", async (_name, expected) => {
    const { path } = await seed({ signals: 100 });
    editSignals(path, "PRAGMA foreign_keys = OFF", ...expected.statements);
    const { ok, checks } = verifyDatabase(path);
    const failing = Object.entries(checks).filter(([, check]) => !check.ok);
    expect({ ok, failing: failing.map(([name]) => name) }).toEqual({
      ok: false,
      failing: expected.fails,
    });
    expect(failing.map(([, { detail }]) => detail).join()).toContain(expected.says);
  });

  test("a signal that is not the one that was sent", async () => {
    const { path, dataDir } = await seed({ signals: 100 });
    edit(path, "UPDATE signals SET price = price + 1 WHERE seq IN (9, 70)");
    const { ok, checks } = verifyDatabase(path);
    const named = [9, 70].map((seq) => `signal ${seededUlid(seq)} does not match its hash`);
    expect([ok, checks["values"]?.ok, checks["hashes"]]).toEqual([
      false,
      true,
      { ok: false, detail: named.join("; ") },
    ]);
    const backup = await cliHere(["backup", join(temporaryFolder(), "b.db"), "--data", dataDir]);
    expect([backup.code, backup.stderr.includes(named[0] ?? "")]).toEqual([1, true]);
  });

  const PAGE = { kind: 13, text: '"number":700,' } as const;
  test.each([
    ["a signal that is stored twice", (path: string) => storeTwice(path, [3, 900]), /non-unique/],
    [
      "a signal that is gone from its page",
      (path: string) => changePage(path, PAGE.kind, PAGE.text, dropLastCell),
      /row 700 missing|missing from index|wrong # of entries/,
    ],
    [
      "a page of zeros",
      (path: string) => changePage(path, PAGE.kind, PAGE.text, (page) => void page.fill(0)),
      /malformed|Tree/,
    ],
  ])("%s", async (_name, damage, says) => {
    const { path } = await seed({ signals: 1_000 });
    damage(path);
    const { ok, checks } = verifyDatabase(path);
    expect({ ok, integrity: checks["integrity"]?.ok }).toEqual({ ok: false, integrity: false });
    expect(checks["integrity"]?.detail).toMatch(says);
  });

  test("the command prints the failing check and what to do, and exits with 1", async () => {
    const { dataDir, path } = await seed({ signals: 10 });
    storeTwice(path, [3, 9]);
    const { code, stdout, stderr } = await cliHere(["verify", "--data", dataDir]);
    expect(stdout).toContain("integrity: failing (non-unique entry in index");
    expect(stderr).toBe(
      `signalbox: ${path} is damaged: stop the server, then restore a backup (the current database is kept) with: signalbox restore FILE --force --data ${dataDir}\n`,
    );
    expect(code).toBe(1);
    const backup = await cliHere(["verify", path]);
    expect(backup).toEqual({
      code: 1,
      stdout,
      stderr: `signalbox: ${path} is damaged: do not restore this backup, use another one.\n`,
    });
    const json = await cliHere(["verify", "--json", "--data", dataDir]);
    expect(json.code).toBe(1);
    expect(JSON.parse(json.stdout)).toMatchObject({
      ok: false,
      checks: { integrity: { ok: false } },
    });
  });

  test("the command says that it read nothing else of another schema", async () => {
    const { path } = await seed({ signals: 10 });
    edit(path, "DROP INDEX signals_desk");
    const { code, stdout, stderr } = await cliHere(["verify", path]);
    expect(stdout).toStartWith(
      'schema: failing (missing: index "signals_desk")\nintegrity: not checked\n',
    );
    expect(stderr).toBe(
      `signalbox: ${path} does not have Signalbox's schema, and nothing else in it was read. If you changed it with another program, undo that; if not: do not restore this backup, use another one.\n`,
    );
    expect(code).toBe(1);
  });

  test("no database, but a folder or a device", async () => {
    const folder = temporaryFolder();
    await expectRefusal(
      ["verify", folder],
      `${folder} is a folder: verify its database with: signalbox verify --data ${folder}`,
    );
    await expectRefusal(["verify", "/dev/null"], "/dev/null is not a regular file: name a backup");
  });

  test.each(["empty", "missing"])(
    "an %s database whose log is there, which is kept",
    async (how) => {
      const { dataDir, path } = await seed({ signals: 5, logged: 3 });
      renameSync(path, `${path}.moved`);
      if (how === "empty") writeFileSync(path, "");
      const problem = `${path} is missing or empty, but its log ${path}-wal is there: put the database back beside it`;
      await expectRefusal(["verify", "--data", dataDir], problem);
      expect(() => copyDatabase(path, join(temporaryFolder(), "backup.db"))).toThrow(problem);
      expect(() => openDatabase(dataDir, "command")).toThrow(problem);
      renameSync(`${path}.moved`, path);
      expect(verifyDatabase(path)).toMatchObject({ ok: true, signals: 8 });
    },
  );

  test("an id that is not a ULID, with which serve does not start either", async () => {
    const { path, dataDir } = await seed({ signals: 3 });
    edit(path, "UPDATE signals SET id = '8' || substr(id, 2) WHERE seq = 3");
    await expectRefusal(
      ["serve", "--data", dataDir, "--listen", "127.0.0.1:0"],
      /signalbox\.db is damaged \(the id of the newest signal is not a ULID\): .* restore a backup/,
    );
  });

  test("a data folder beside the file is a usage error, but not if the environment names it", async () => {
    const { path, dataDir } = await seed({ signals: 1 });
    await expectUsageError(["verify", path, "--data", dataDir], "leave out --data");
    const env = { SIGNALBOX_DATA: newDataDir() };
    expect(await cliHere(["verify", path], { env })).toMatchObject({ code: 0, stderr: "" });
  });

  test("damage that SQLite reports in several lines, in one line", async () => {
    const { path } = await seed({ signals: 1 });
    const bytes = readFileSync(path);
    // A quote that nothing closes, and an escape character, in the definition and in what a page has left of it.
    const name = "metadata         TEXT";
    for (let at = bytes.indexOf(name); at >= 0; at = bytes.indexOf(name)) {
      bytes.write('"\u001b', at);
    }
    writeFileSync(path, bytes);
    const { code, stdout, stderr } = await cliHere(["verify", path]);
    expect(stdout).not.toContain("\u001b");
    expect(stdout).toMatch(
      /^schema: not checked\nintegrity: failing \(malformed database schema[^\n]+\)\nforeign_keys: not checked\n/,
    );
    expect({ code, stderr }).toEqual({
      code: 1,
      stderr: `signalbox: ${path} is damaged: do not restore this backup, use another one.\n`,
    });
    const json = await cliHere(["verify", "--json", path]);
    expect(JSON.parse(json.stdout)).toMatchObject({ ok: false, checks: { schema: { ok: null } } });
  });
});

test("control characters in names, labels and e-mails fail verify and are printed escaped", async () => {
  const { dataDir, path } = await seed({ signals: 1 });
  edit(
    path,
    "UPDATE api_keys SET label = 'a' || char(27) || '[2J' || char(10) || char(155) || 'b'",
    "UPDATE desks SET name = name || char(27)",
    "INSERT INTO members (id, desk_id, email, role, created_at) SELECT 'm', id, 'a' || char(0) || 'b', 'viewer', 0 FROM desks LIMIT 1",
  );
  const verification = verifyDatabase(path);
  for (const column of ["name", "label", "email"]) {
    expect(verification.checks["values"]?.detail).toContain(`a control character in its ${column}`);
  }
  const listed = await cliHere(["key", "list", "--data", dataDir]);
  expect(listed.stdout).toContain("a⟨U+001B⟩[2J⟨U+000A⟩⟨U+009B⟩b");
  expect(listed.stdout.replaceAll("\n", "")).not.toMatch(/\p{Cc}/u);
  const { stdout } = await cliHere(["key", "list", "--json", "--data", dataDir]);
  expect(stdout.replaceAll("\n", "")).not.toMatch(/\p{Cc}/u);
  expect(JSON.parse(stdout)[0].label).toBe("a\u001b[2J\n\u009bb");
});

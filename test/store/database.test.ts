import { Database } from "bun:sqlite";
import { describe, expect, test } from "bun:test";
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { fieldNames } from "../../src/domain/signal/signal.ts";
import { inspectStorage } from "../../src/store/open.ts";
import { explainFailure } from "../../src/store/sqlite/files/failures.ts";
import { lockFolder } from "../../src/store/sqlite/files/lock.ts";
import {
  APPLICATION_ID,
  currentSchema,
  migrate,
  type Schema,
  schemaVersion,
  UNRELEASED_APPLICATION_ID,
} from "../../src/store/sqlite/files/migrate.ts";
import { openDatabase } from "../../src/store/sqlite/files/open.ts";
import { cliHere, startServe } from "../kit/cli.ts";
import { onCleanup, rejection, signal, startTestApp, temporaryFolder } from "../kit/setup.ts";
import { recordsIn } from "../kit/records.ts";

const database = (dataDir: string) => join(dataDir, "signalbox.db");
const mode = (path: string) => (statSync(path).mode & 0o777).toString(8);

function open(dataDir: string): Database {
  const db = openDatabase(dataDir, "command");
  onCleanup(() => db.close());
  return db;
}

function pragma(db: Database, name: string): unknown {
  return Object.values(db.query(`PRAGMA ${name}`).get() as object)[0];
}

function refusal(dataDir: string): string {
  try {
    openDatabase(dataDir, "command").close();
    return "";
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}

/** A data folder that somebody has opened to others. */
function looseFolder(): string {
  const dataDir = join(temporaryFolder(), "data");
  openDatabase(dataDir, "command").close();
  chmodSync(dataDir, 0o755);
  chmodSync(database(dataDir), 0o640);
  return dataDir;
}

describe("permissions", () => {
  test("a new folder is 0700, and what is in it 0600, whatever the umask", async () => {
    const before = process.umask(0);
    try {
      const dataDir = join(temporaryFolder(), "data");
      const { post } = await startTestApp({ dataDir });
      expect((await post(signal)).status).toBe(201);
      expect(mode(dataDir)).toBe("700");
      const files = readdirSync(dataDir).filter((file) => file.startsWith("signalbox.db"));
      expect(files.toSorted()).toEqual(["signalbox.db", "signalbox.db-shm", "signalbox.db-wal"]);
      for (const file of files) expect([file, mode(join(dataDir, file))]).toEqual([file, "600"]);
    } finally {
      process.umask(before);
    }
  });

  test("a command that tightens them says so, beside its output", async () => {
    const dataDir = looseFolder();
    const first = await cliHere(["desk", "list", "--json", "--data", dataDir]);
    expect(first).toEqual({
      code: 0,
      stdout: "[]\n",
      stderr: `${dataDir} was open to other users (mode 0755); it is 0700 now\n${database(dataDir)} was open to other users (mode 0640); it is 0600 now\n`,
    });
    const second = await cliHere(["desk", "list", "--json", "--data", dataDir]);
    expect(second).toEqual({ ...first, stderr: "" });
  });

  test("a server that tightens them says so in its log", async () => {
    const dataDir = looseFolder();
    const lock = join(dataDir, "serve.lock");
    writeFileSync(lock, "", { mode: 0o640 });
    const { output, log } = await startServe([], { dataDir });
    const warnings = log().filter(({ level }) => level === "warn");
    expect(warnings.map(({ msg }) => msg)).toEqual([
      `${dataDir} was open to other users (mode 0755); it is 0700 now`,
      `${lock} was open to other users (mode 0640); it is 0600 now`,
      `${database(dataDir)} was open to other users (mode 0640); it is 0600 now`,
    ]);
    expect(output.stderr.split("\n").filter((line) => !/^(\{|$)/.test(line))).toEqual([]);
  });

  test("a folder with other files in it is refused and left as it is", () => {
    for (const before of [0o755, 0o555]) {
      const home = join(temporaryFolder(), "home");
      mkdirSync(home);
      writeFileSync(join(home, "letter.txt"), "dear");
      chmodSync(home, before);
      expect(refusal(home)).toBe(
        `The folder ${home} has other files in it and no database: name an empty or new folder with --data DIR.`,
      );
      expect(() => lockFolder(home)).toThrow("has other files in it");
      expect(readdirSync(home)).toEqual(["letter.txt"]);
      expect(statSync(home).mode & 0o777).toBe(before);
      chmodSync(home, 0o700);
    }
  });

  test("a new volume, which has lost+found in it, is a folder like an empty one", () => {
    const dataDir = temporaryFolder();
    mkdirSync(join(dataDir, "lost+found"));
    open(dataDir).close();
    expect(existsSync(database(dataDir))).toBe(true);
  });
});

test.each([0o400, 0o000])(
  "a database with mode %o is refused, with the chmod to type",
  (closed) => {
    const dataDir = temporaryFolder();
    open(dataDir).close();
    const path = database(dataDir);
    chmodSync(path, closed);
    const digits = closed.toString(8).padStart(4, "0");
    const problem = `${path} cannot be used: its mode is ${digits}. Run: chmod 600 ${path}, or name another folder with --data DIR.`;
    expect(refusal(dataDir)).toBe(problem);
    expect(() => inspectStorage(dataDir, () => {})).toThrow(problem);
    const explained = explainFailure(new Error("unable to open database file"), path);
    if (closed === 0) expect(explained).toMatchObject({ message: problem });
    chmodSync(path, 0o600);
    expect(refusal(dataDir)).toBe("");
  },
);

function foreign(dataDir: string, prepare: (db: Database) => void): void {
  const db = new Database(database(dataDir), { create: true });
  prepare(db);
  db.close();
}

describe("a file that is not ours is refused and left as it is", () => {
  const cases: [string, (dataDir: string) => void][] = [
    [
      "another program's SQLite file",
      (dataDir) => foreign(dataDir, (db) => db.run("CREATE TABLE notes (text)")),
    ],
    [
      "another program's SQLite file in WAL mode",
      (dataDir) =>
        foreign(dataDir, (db) => {
          db.run("PRAGMA journal_mode = WAL");
          db.run("CREATE TABLE notes (text)");
        }),
    ],
    [
      "a SQLite file that says whose it is",
      (dataDir) => foreign(dataDir, (db) => db.run("PRAGMA application_id = 1234")),
    ],
    [
      "a SQLite file with our tables, but not our mark",
      (dataDir) => foreign(dataDir, (db) => db.run(currentSchema.sql)),
    ],
    ["a text", (dataDir) => writeFileSync(database(dataDir), "dear diary")],
    ["zeros", (dataDir) => writeFileSync(database(dataDir), Buffer.alloc(8192))],
  ];
  test.each(cases)("%s", (_name, prepare) => {
    const dataDir = temporaryFolder();
    prepare(dataDir);
    chmodSync(database(dataDir), 0o640);
    const before = readFileSync(database(dataDir));
    expect(refusal(dataDir)).toContain("is not a Signalbox database, and was left as it is");
    expect(readFileSync(database(dataDir)).equals(before)).toBe(true);
    expect(mode(database(dataDir))).toBe("640");
  });

  test("and may be a damaged one of ours if it has our name", () => {
    const dataDir = temporaryFolder();
    open(dataDir).close();
    const bytes = readFileSync(database(dataDir));
    writeFileSync(database(dataDir), bytes.fill(0, 0, 16));
    expect(refusal(dataDir)).toEndWith(
      `If this is the right folder, the file is damaged: restore a backup (the current file is kept): signalbox restore FILE --data ${dataDir} --force`,
    );
  });

  test("a folder in the database's place", () => {
    const dataDir = temporaryFolder();
    mkdirSync(database(dataDir));
    expect(refusal(dataDir)).toContain("--data DIR");
  });
});

describe("versions", () => {
  const base = currentSchema.sql;
  const version = schemaVersion(currentSchema);
  const upgraded: Schema = {
    ...currentSchema,
    sql: `${base}; CREATE TABLE extras (id INTEGER PRIMARY KEY) STRICT`,
    upgrades: [
      ...currentSchema.upgrades,
      "CREATE TABLE extras (id INTEGER PRIMARY KEY) STRICT; INSERT INTO extras VALUES (1)",
      "INSERT INTO extras VALUES (2)",
    ],
  };

  test("a database of a build from before the first release is refused and left as it is", () => {
    const dataDir = temporaryFolder();
    foreign(dataDir, (db) => {
      db.run(`PRAGMA application_id = ${UNRELEASED_APPLICATION_ID}`);
      db.run("PRAGMA user_version = 4");
    });
    const before = readFileSync(database(dataDir));
    expect(refusal(dataDir)).toContain("from before its first release");
    expect(readFileSync(database(dataDir)).equals(before)).toBe(true);
  });

  test("a newer database is refused and left as it is", () => {
    const dataDir = temporaryFolder();
    const db = open(dataDir);
    migrate(db, upgraded);
    db.run("PRAGMA wal_checkpoint(TRUNCATE)");
    const before = readFileSync(database(dataDir));
    expect(refusal(dataDir)).toContain(
      `written by a newer signalbox (database version ${version + 2}; this one knows ${version}): run that version`,
    );
    expect(readFileSync(database(dataDir)).equals(before)).toBe(true);
  });

  test("an older one is upgraded, step by step, and keeps its rows", async () => {
    const dataDir = temporaryFolder();
    const db = open(dataDir);
    await recordsIn(db).registry.createDesk("alpha", { ifMissing: false });
    migrate(db, { ...currentSchema, upgrades: upgraded.upgrades.slice(0, version) });
    expect(pragma(db, "user_version")).toBe(version + 1);
    migrate(db, upgraded);
    expect(pragma(db, "user_version")).toBe(version + 2);
    expect(db.query("SELECT id FROM extras ORDER BY id").values()).toEqual([[1], [2]]);
    expect(await recordsIn(db).registry.listDesks()).toMatchObject([{ name: "alpha" }]);
  });

  test("a new one is made at the newest version, without the steps", () => {
    const db = new Database(":memory:");
    onCleanup(() => db.close());
    migrate(db, upgraded);
    expect(pragma(db, "user_version")).toBe(version + 2);
    expect(db.query("SELECT id FROM extras").values()).toEqual([]);
  });

  test("where a later step fails, nothing has changed", async () => {
    const dataDir = temporaryFolder();
    const db = open(dataDir);
    const registry = recordsIn(db).registry;
    await registry.createDesk("alpha", { ifMissing: false });
    const broken: Schema = {
      ...currentSchema,
      upgrades: [
        ...currentSchema.upgrades,
        "CREATE TABLE extras (id INTEGER); UPDATE desks SET name = 'other'",
        "INSERT INTO nowhere VALUES (1)",
      ],
    };
    expect(() => migrate(db, broken)).toThrow("no such table: nowhere");
    expect(pragma(db, "user_version")).toBe(version);
    expect(db.query("SELECT name FROM sqlite_schema WHERE name = 'extras'").values()).toEqual([]);
    expect(await registry.listDesks()).toMatchObject([{ name: "alpha" }]);
  });

  test("an empty file is a new database", () => {
    const dataDir = temporaryFolder();
    writeFileSync(database(dataDir), "");
    expect(pragma(open(dataDir), "user_version")).toBe(version);
    expect(mode(database(dataDir))).toBe("600");
  });
});

describe("the database", () => {
  test.each(["writer", "reader", "command"] as const)("has its pragmas for a %s", (role) => {
    const db = openDatabase(temporaryFolder(), role);
    onCleanup(() => db.close());
    expect({
      journal_mode: pragma(db, "journal_mode"),
      synchronous: pragma(db, "synchronous"),
      foreign_keys: pragma(db, "foreign_keys"),
      trusted_schema: pragma(db, "trusted_schema"),
      application_id: pragma(db, "application_id"),
    }).toEqual({
      journal_mode: "wal",
      synchronous: 2,
      foreign_keys: 1,
      trusted_schema: 0,
      application_id: APPLICATION_ID,
    });
    expect(pragma(db, "busy_timeout")).toBeGreaterThan(0);
  });

  test("is STRICT throughout, and has a column for every field of a signal", () => {
    const db = open(temporaryFolder());
    const notStrict =
      "SELECT name FROM pragma_table_list WHERE schema = 'main' AND name NOT LIKE 'sqlite_%' AND NOT strict";
    expect(db.query(notStrict).values()).toEqual([]);
    const columns = db.query("SELECT name FROM pragma_table_info('signals')").values().flat();
    const added = ["seq", "id", "desk_id", "key_id", "received_at", "hash"];
    expect(new Set(columns)).toEqual(new Set([...added, ...fieldNames]));
  });

  test("a damaged file is named as such, with what to do", async () => {
    const dataDir = temporaryFolder();
    const db = openDatabase(dataDir, "command");
    await recordsIn(db).registry.createDesk("alpha", { ifMissing: false });
    db.run("PRAGMA wal_checkpoint(TRUNCATE)");
    db.close();
    const bytes = readFileSync(database(dataDir));
    const formatAt = 47; // https://sqlite.org/fileformat2.html#schema_format_number
    for (const damaged of [
      Buffer.from(bytes).fill(0xff, 100),
      Buffer.from(bytes).fill(0xff, formatAt, formatAt + 1),
    ]) {
      writeFileSync(database(dataDir), damaged);
      const listing = async () => recordsIn(openDatabase(dataDir, "command")).registry.listDesks();
      expect(String(await rejection(listing()))).toMatch(/is damaged .* restore a backup/);
    }
  });
});

test.each(["desks", "api_keys", "members", "signal_blocks"])(
  "a server does not start if the table %s is damaged",
  (table) => {
    const dataDir = temporaryFolder();
    const db = openDatabase(dataDir, "command");
    const sql = "SELECT rootpage AS page FROM sqlite_schema WHERE name = ?";
    const { page } = db.query(sql).get(table) as { page: number };
    db.run("PRAGMA wal_checkpoint(TRUNCATE)");
    db.close();
    const bytes = readFileSync(database(dataDir));
    writeFileSync(database(dataDir), bytes.fill(0, (page - 1) * 4_096, page * 4_096));
    expect(() => openDatabase(dataDir, "reader")).toThrow(/is damaged .* restore a backup/);
  },
);

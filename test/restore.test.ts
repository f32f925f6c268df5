import { Database } from "bun:sqlite";
import { describe, expect, setDefaultTimeout, test } from "bun:test";
import {
  chmodSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { copyDatabase } from "../src/store/sqlite/copy.ts";
import { restoringPath } from "../src/store/sqlite/folder.ts";
import { SqliteMembers } from "../src/store/sqlite/members.ts";
import { MERGED_TABLES } from "../src/store/sqlite/carry-over.ts";
import { currentSchema, schemaVersion } from "../src/store/sqlite/migrate.ts";
import { openDatabase } from "../src/store/sqlite/open.ts";
import { putInPlace } from "../src/store/sqlite/restore.ts";
import { verifyDatabase } from "../src/store/sqlite/verify.ts";
import { cli, type CliResult, signalbox, startServe } from "./_cli.ts";
import {
  contentOf,
  newDataDir,
  type Seeded,
  seed,
  seededId,
  seededUlid,
  withRegistryOf,
} from "./_databases.ts";
import { variantOf } from "./faults/_variant.ts";
import { callUrl, query, signal, temporaryFolder } from "./_setup.ts";

setDefaultTimeout(120_000);

const mode = (path: string): string => (statSync(path).mode & 0o777).toString(8);

function restore(file: string, dataDir: string, ...more: string[]): Promise<CliResult> {
  return cli(["restore", file, "--data", dataDir, ...more]);
}

/** A database and a backup of it. */
function seedWithBackup(signals: number): Seeded & { file: string } {
  const seeded = seed({ signals });
  const file = join(temporaryFolder(), "backup.db");
  copyDatabase(seeded.path, file);
  return { ...seeded, file };
}

/** In this process: a restore that has nobody to talk to. */
function restoreHere(file: string, { path }: { path: string }) {
  copyDatabase(file, restoringPath(path));
  return putInPlace(path, "20261121T115119Z");
}

/** A folder with all that is in another one. */
function duplicate(dataDir: string): { dataDir: string; path: string } {
  const copy = newDataDir();
  mkdirSync(copy, { mode: 0o700 });
  for (const name of readdirSync(dataDir)) copyFileSync(join(dataDir, name), join(copy, name));
  return { dataDir: copy, path: join(copy, "signalbox.db") };
}

interface KeyRow {
  readonly id: string;
  readonly expires_at: number | null;
  readonly last_used_at: number | null;
  readonly revoked_at: number | null;
}

function keysOf(dataDir: string): KeyRow[] {
  return query<KeyRow>(
    dataDir,
    "SELECT id, expires_at, last_used_at, revoked_at FROM api_keys ORDER BY id",
  );
}

async function post(url: string, key: string, body: object) {
  const { status, body: answer } = await callUrl(url, "/v1/signals", {
    method: "POST",
    headers: { Authorization: `Bearer ${key}`, "Content-Type": "application/json" },
    body: JSON.stringify({ ...signal, ...body }),
  });
  return { status, id: answer["id"] };
}

/** Code 1, one sentence, and nothing of the folder has changed. */
async function expectRefusal(
  file: string,
  dataDir: string,
  says: string | RegExp,
  ...more: string[]
): Promise<void> {
  const before = listFiles(dataDir);
  const { code, stdout, stderr } = await restore(file, dataDir, ...more);
  expect(stderr).toMatch(/^signalbox: [^\n]+\n$/);
  expect(stderr).toMatch(says);
  expect({ code, stdout }).toEqual({ code: 1, stdout: "" });
  expect(listFiles(dataDir)).toEqual(before);
}

/** Name and content of all but the lock and the index of the log. */
function listFiles(dataDir: string): [string, string][] {
  if (!existsSync(dataDir)) return [];
  const names = readdirSync(dataDir).filter((name) => !/^serve\.lock|-shm$/.test(name));
  return names
    .map((name): [string, string] => [
      name,
      Bun.hash(readFileSync(join(dataDir, name))).toString(16),
    ])
    .filter(([name]) => !name.endsWith("-wal") || statSync(join(dataDir, name)).size > 0)
    .toSorted(([a], [b]) => a.localeCompare(b));
}

describe("restore into an empty folder", () => {
  test("puts the backup there, and a server continues from it", async () => {
    const { file, path, key } = seedWithBackup(3_000);
    const dataDir = newDataDir();
    const { code, stdout, stderr } = await restore(file, dataDir);
    expect({ code, stdout }).toEqual({ code: 0, stdout: "" });
    expect(stderr).toBe(
      `Keys are as they were at the time of the backup: revoke again what was revoked since; list them with: signalbox key list --data ${dataDir}\n` +
        `${dataDir} has 3000 signals, the newest ${seededUlid(3_000)}. Start the server with: signalbox serve --data ${dataDir}\n`,
    );
    expect(readdirSync(dataDir).toSorted()).toEqual(["serve.lock", "signalbox.db"]);
    expect([mode(dataDir), mode(join(dataDir, "signalbox.db"))]).toEqual(["700", "600"]);
    expect(contentOf(join(dataDir, "signalbox.db"))).toEqual(contentOf(path));

    const { url } = await startServe([], { dataDir });
    for (const seq of [1, 1_500, 3_000]) {
      const again = await post(url, key, { client_signal_id: seededId(seq) });
      expect(again).toEqual({ status: 200, id: seededUlid(seq) });
    }
    const next = await post(url, key, { client_signal_id: "new" });
    expect(next.status).toBe(201);
    expect(String(next.id) > seededUlid(3_000)).toBe(true);
  });

  test("new ids are above the backup's, even if the clock is behind them", async () => {
    const { path } = seed({ signals: 5 });
    const db = new Database(path);
    const future = "7ZZZZZZZZZ0000000000000005";
    db.query("UPDATE signals SET id = ? WHERE seq = 5").run(future);
    db.close();
    const file = join(temporaryFolder(), "backup.db");
    copyDatabase(path, file);
    const restored = newDataDir();
    expect(await restore(file, restored)).toMatchObject({ code: 0 });
    const { key } = withRegistryOf(restored, (registry) =>
      registry.mintKey({ desk: "alpha", label: null, expiresInMs: null }),
    );
    const { url } = await startServe([], { dataDir: restored });
    const { status, id } = await post(url, key, {});
    expect({ status, rises: String(id) > future }).toEqual({ status: 201, rises: true });
  });

  test("reports the result with --json", async () => {
    const { file } = seedWithBackup(12);
    const dataDir = newDataDir();
    const { code, stdout } = await restore(file, dataDir, "--json");
    expect(code).toBe(0);
    expect(JSON.parse(stdout)).toEqual({
      data: dataDir,
      signals: 12,
      newest_id: seededUlid(12),
      kept: null,
      keys: null,
    });
  });

  test("replaces an empty file, and keeps a log whose database is missing", () => {
    const { file } = seedWithBackup(5);
    const killed = seed({ signals: 5, logged: 3 });
    const log = readFileSync(`${killed.path}-wal`);
    writeFileSync(killed.path, "");
    expect(restoreHere(file, killed)).toEqual({ kept: null, keys: null });
    expect(readFileSync(`${killed.path}.before-20261121T115119Z-wal`).equals(log)).toBe(true);
    expect(verifyDatabase(killed.path)).toMatchObject({ ok: true, signals: 5 });
  });
});

describe("restore over a database", () => {
  test("is refused without --force", async () => {
    const { file, dataDir } = seedWithBackup(5);
    await expectRefusal(file, dataDir, /has a database, and nothing was changed: .* add --force/);
  });

  test("is refused while a server runs on it", async () => {
    const { file, dataDir, key } = seedWithBackup(5);
    const { url } = await startServe([], { dataDir });
    const { code, stderr } = await restore(file, dataDir, "--force");
    expect({ code, stderr }).toEqual({
      code: 1,
      stderr: `signalbox: Another signalbox serves ${dataDir} already: stop it first, or name another folder with --data DIR.\n`,
    });
    expect(await post(url, key, {})).toMatchObject({ status: 201 });
    expect(query(dataDir, "SELECT count(*) AS n FROM signals")).toEqual([{ n: 6 }]);
  });

  test("with --force keeps the previous database and the log of a killed server", async () => {
    const { file } = seedWithBackup(5);
    const killed = seed({ signals: 2_000, logged: 30 });
    const before = contentOf(duplicate(killed.dataDir).path);
    expect(before.signals.rows).toBe(2_030);
    const { code, stderr } = await restore(file, killed.dataDir, "--force");
    expect(code).toBe(0);
    const kept = /^The previous database is kept as (.+)$/m.exec(stderr)?.[1] ?? "";
    expect(kept).toMatch(/signalbox\.db\.before-\d{8}T\d{6}Z$/);
    expect(contentOf(kept)).toEqual(before);
    expect(contentOf(killed.path).signals.rows).toBe(5);
    const names = readdirSync(killed.dataDir).filter((name) => !name.includes(".before-"));
    expect(names.toSorted()).toEqual(["serve.lock", "signalbox.db"]);
    // It can be restored in turn.
    expect(await restore(kept, killed.dataDir, "--force")).toMatchObject({ code: 0 });
    expect(contentOf(killed.path).signals).toEqual(before.signals);
  });

  test("twice within a second keeps both", () => {
    const { file } = seedWithBackup(5);
    const there = seed({ signals: 8, logged: 2 });
    const first = restoreHere(file, there);
    const second = restoreHere(file, there);
    expect([first.kept, second.kept]).toEqual([
      `${there.path}.before-20261121T115119Z`,
      `${there.path}.before-20261121T115119Z-2`,
    ]);
    expect(contentOf(first.kept ?? "").signals.rows).toBe(10);
    expect(contentOf(second.kept ?? "").signals.rows).toBe(5);
  });

  test("tightens the folder's permissions, with a warning", async () => {
    const { file, dataDir } = seedWithBackup(5);
    chmodSync(dataDir, 0o755);
    const { stderr } = await restore(file, dataDir, "--force");
    expect(stderr).toContain(`${dataDir} was open to other users (mode 0755); it is 0700 now`);
    expect(mode(dataDir)).toBe("700");
  });
});

describe("a file is refused, and nothing is changed, if", () => {
  const damages: [string, (file: string) => void, string | RegExp][] = [
    [
      "a page of it is gone",
      (file) => {
        const bytes = readFileSync(file);
        const page = Math.floor(bytes.length / 4_096 / 2);
        writeFileSync(file, bytes.fill(0, page * 4_096, (page + 1) * 4_096));
      },
      /is damaged \(.+\), and nothing was changed: restore another backup/,
    ],
    [
      "its end is missing",
      (file) => {
        const bytes = readFileSync(file);
        writeFileSync(file, bytes.subarray(0, bytes.length - 4_096));
      },
      /is damaged \(.+\), and nothing was changed: restore another backup/,
    ],
    [
      "it is a text",
      (file) => writeFileSync(file, "dear diary"),
      "is not a Signalbox database, and was left as it is: name another file",
    ],
    [
      "it is of a newer version",
      (file) => {
        const db = new Database(file);
        db.run("PRAGMA user_version = 99");
        db.close();
      },
      `was written by a newer signalbox (database version 99; this one knows ${schemaVersion(currentSchema)}): run that version`,
    ],
  ];
  test.each(damages)("%s", async (_name, damage, says) => {
    const { file, dataDir } = seedWithBackup(3_000);
    damage(file);
    await expectRefusal(file, dataDir, says, "--force");
    const empty = newDataDir();
    await expectRefusal(file, empty, says);
    expect(existsSync(empty)).toBe(false);
  });

  test("it is missing or a folder", async () => {
    const dataDir = newDataDir();
    const folder = temporaryFolder();
    const missing = join(folder, "none.db");
    await expectRefusal(missing, dataDir, `There is no file ${missing}: name a backup`);
    await expectRefusal(folder, dataDir, `${folder} is a folder: name a backup in it, such as`);
    expect(existsSync(dataDir)).toBe(false);
  });
});

describe("keys", () => {
  test("created, revoked and rotated since the backup stay so", async () => {
    const seeded = seed({ signals: 10 });
    const ids = withRegistryOf(seeded.dataDir, (registry) => {
      const mint = () => registry.mintKey({ desk: "alpha", label: null, expiresInMs: null });
      return { revoked: mint(), rotated: mint() };
    });
    const file = join(temporaryFolder(), "backup.db");
    copyDatabase(seeded.path, file);
    const { minted } = withRegistryOf(seeded.dataDir, (registry) => {
      registry.revokeKey(ids.revoked.record.id);
      registry.createDesk("beta", { ifMissing: false });
      registry.mintKey({ desk: "beta", label: null, expiresInMs: null });
      return registry.rotateKey(ids.rotated.record.id, { overlapMs: 60_000, expiresInMs: null });
    });
    const before = keysOf(seeded.dataDir);
    const { code, stderr } = await restore(file, seeded.dataDir, "--force");
    expect(code).toBe(0);
    expect(stderr).toContain(
      "Keys are as they were before: 2 created and 1 revoked since the backup.\n",
    );
    expect(keysOf(seeded.dataDir)).toEqual(before);
    expect(before).toHaveLength(5);
    const { url } = await startServe([], { dataDir: seeded.dataDir });
    expect(await post(url, ids.revoked.key, {})).toMatchObject({ status: 401 });
    expect(await post(url, minted.key, {})).toMatchObject({ status: 201 });
    expect(await post(url, ids.rotated.key, {})).toMatchObject({ status: 201 });
  });

  test("revoked or expiring in the backup stay so, if the backup is newer", () => {
    const older = seed({ signals: 5 });
    const ids = withRegistryOf(older.dataDir, (registry) => {
      const mint = () => registry.mintKey({ desk: "alpha", label: null, expiresInMs: null });
      return [mint(), mint(), mint()].map(({ record }) => record.id);
    });
    const newer = duplicate(older.dataDir);
    withRegistryOf(newer.dataDir, (registry) => {
      registry.revokeKey(ids[0] ?? "");
      registry.rotateKey(ids[1] ?? "", { overlapMs: 60_000, expiresInMs: null });
      registry.createDesk("gamma", { ifMissing: false });
    });
    withRegistryOf(older.dataDir, (registry) => registry.revokeKey(ids[2] ?? ""));
    const used = new Database(newer.path);
    used.query("UPDATE api_keys SET last_used_at = 5 WHERE id = ?").run(ids[2] ?? "");
    used.run("UPDATE desks SET differing_duplicates = 4, passkeys_required = name = 'alpha'");
    used.close();
    const file = join(temporaryFolder(), "backup.db");
    copyDatabase(newer.path, file);
    const wanted = keysOf(newer.dataDir);
    expect(restoreHere(file, older).keys).toEqual({ minted: 0, revoked: 1, failure: null });
    const keys = new Map(keysOf(older.dataDir).map((key) => [key.id, key]));
    expect(keys.size).toBe(wanted.length);
    for (const { id, revoked_at, expires_at } of wanted.filter((key) => key.id !== ids[2])) {
      expect(keys.get(id)).toMatchObject({ revoked_at, expires_at });
    }
    const revoked = { revoked_at: expect.any(Number), last_used_at: 5 };
    expect(keys.get(ids[2] ?? "")).toMatchObject(revoked);
    expect(
      query(
        older.dataDir,
        "SELECT name, differing_duplicates AS n, passkeys_required AS p FROM desks ORDER BY id",
      ),
    ).toEqual([
      { name: "alpha", n: 4, p: 1 },
      { name: "gamma", n: 4, p: 0 },
    ]);
  });

  test("of another server are not carried over, with a note", async () => {
    const { file, keyId } = seedWithBackup(5);
    const other = seed({ signals: 5 });
    const fresh = newDataDir();
    openDatabase(fresh, "command").close();
    for (const dataDir of [other.dataDir, fresh]) {
      const { stderr } = await restore(file, dataDir, "--force");
      expect(stderr).toContain(
        "Keys are as they were at the time of the backup (those of the previous database cannot be carried over: it has none of the backup's desks): revoke again what was revoked since",
      );
      expect(keysOf(dataDir).map(({ id }) => id)).toEqual([keyId]);
    }
  });

  test("of a damaged database cannot be carried over, with a note", async () => {
    const { file, dataDir, path, keyId } = seedWithBackup(2_000);
    withRegistryOf(dataDir, (registry) => registry.revokeKey(keyId));
    const db = new Database(path, { readonly: true });
    const { page } = db
      .query<{ page: number }, []>(
        "SELECT rootpage AS page FROM sqlite_schema WHERE name = 'api_keys'",
      )
      .get() ?? { page: 0 };
    db.close();
    const bytes = readFileSync(path);
    writeFileSync(path, bytes.fill(0, (page - 1) * 4_096, page * 4_096));
    const { code, stderr } = await restore(file, dataDir, "--force");
    expect(code).toBe(0);
    expect(stderr).toMatch(
      /^Keys are as they were at the time of the backup \(.* cannot be carried over: damaged: .*\): revoke again/m,
    );
    expect(keysOf(dataDir)).toMatchObject([{ id: keyId, revoked_at: null }]);
    const kept = /kept as (.+)$/m.exec(stderr)?.[1] ?? "";
    expect(readFileSync(kept).equals(bytes)).toBe(true);
  });
});

/** Two databases with a shared history: one, and one that was restored from its backup. */
function part(common: (dataDir: string) => void = () => {}) {
  const first = seed({ signals: 5 });
  common(first.dataDir);
  const backup = join(temporaryFolder(), "b0.db");
  copyDatabase(first.path, backup);
  const second = { dataDir: newDataDir(), path: "" };
  mkdirSync(second.dataDir, { mode: 0o700 });
  second.path = join(second.dataDir, "signalbox.db");
  restoreHere(backup, second);
  const backUpFirst = (): string => {
    const file = join(temporaryFolder(), "b1.db");
    copyDatabase(first.path, file);
    return file;
  };
  return { first, second, backUpFirst };
}

function mintIn(dataDir: string, desk = "alpha", label: string | null = null): string {
  return withRegistryOf(dataDir, (registry) => registry.mintKey({ desk, label, expiresInMs: null }))
    .record.id;
}

function withMembersOf<T>(dataDir: string, work: (members: SqliteMembers) => T): T {
  const db = openDatabase(dataDir, "command");
  try {
    return work(new SqliteMembers(db));
  } finally {
    db.close();
  }
}

function auditOf(dataDir: string) {
  const sql = "SELECT action, key_id FROM audit ORDER BY id";
  return query<{ action: string; key_id: string | null }>(dataDir, sql);
}

function created(key_id: string) {
  return { action: "key.created", key_id };
}

/** The same row of the audit several times. */
function repeat(path: string, times: number): void {
  const db = new Database(path);
  const sql = "INSERT INTO audit (at, desk_id, action) VALUES (5, 1, 'member.signed_in')";
  for (let time = 0; time < times; time += 1) db.run(sql);
  db.close();
}

function create(dataDir: string, ...names: string[]): void {
  withRegistryOf(dataDir, (registry) => {
    for (const name of names) registry.createDesk(name, { ifMissing: false });
  });
}

function invite(dataDir: string): string {
  return withMembersOf(dataDir, (members) => members.invite("alpha", "ada@example.com")).member.id;
}

describe("two databases with a shared history", () => {
  test("keep every key and audit row, once and in order", () => {
    const { first, second, backUpFirst } = part();
    const keys = [first.keyId, mintIn(first.dataDir)];
    const file = backUpFirst();
    keys.push(mintIn(second.dataDir));
    const expected = [{ action: "desk.created", key_id: null }, ...keys.map(created)];
    // The second round must change nothing.
    for (let round = 0; round < 2; round += 1) {
      expect(restoreHere(file, second).keys).toMatchObject({ failure: null });
      expect(keysOf(second.dataDir).map(({ id }) => id)).toEqual(keys);
      expect(auditOf(second.dataDir)).toEqual(expected);
    }
  });

  test("keep equal audit rows as often as the one with more of them", () => {
    const { first, second, backUpFirst } = part();
    repeat(first.path, 2);
    repeat(second.path, 3);
    restoreHere(backUpFirst(), second);
    const sql = "SELECT count(*) AS n FROM audit WHERE action = 'member.signed_in'";
    expect(query(second.dataDir, sql)).toEqual([{ n: 3 }]);
  });

  test("keep the desks of both with their own keys and audit, whatever their row numbers", () => {
    const { first, second, backUpFirst } = part();
    create(first.dataDir, "beta");
    create(second.dataDir, "gamma", "delta");
    const beta = mintIn(first.dataDir, "beta");
    const gamma = mintIn(second.dataDir, "gamma");
    const delta = mintIn(second.dataDir, "delta");
    withRegistryOf(second.dataDir, (registry) => registry.revokeKey(first.keyId));
    const { keys } = restoreHere(backUpFirst(), second);
    expect(keys).toEqual({ minted: 2, revoked: 1, failure: null });
    const sql =
      "SELECT desks.name AS desk, api_keys.id FROM api_keys JOIN desks ON desks.id = desk_id";
    const found = new Map(
      query<{ id: string; desk: string }>(second.dataDir, sql).map(({ id, desk }) => [id, desk]),
    );
    expect([beta, gamma, delta].map((id) => found.get(id))).toEqual(["beta", "gamma", "delta"]);
    expect(keysOf(second.dataDir)[0]).toMatchObject({ revoked_at: expect.any(Number) });
    const auditSql =
      "SELECT desks.name AS desk, key_id AS id FROM audit JOIN desks ON desks.id = desk_id WHERE action = 'key.created'";
    const audited = new Map(
      query<{ id: string; desk: string }>(second.dataDir, auditSql).map(({ id, desk }) => [
        id,
        desk,
      ]),
    );
    expect(audited).toEqual(found);
    expect(verifyDatabase(second.path)).toMatchObject({ ok: true });
  });

  test("keep the newer password, whichever side has it", () => {
    let id = "";
    const change = (dataDir: string, hash: string) =>
      withMembersOf(dataDir, (members) =>
        members.setPassword({ memberId: id, client: null }, hash),
      );
    const { first, second, backUpFirst } = part((dataDir) => {
      withMembersOf(dataDir, (members) => {
        const { token } = members.invite("alpha", "ada@example.com");
        id = members.spendWithPassword(token, "old")?.id ?? "";
      });
    });
    const member = () =>
      query(second.dataDir, "SELECT password_hash FROM members WHERE removed_at IS NULL");
    change(first.dataDir, "newer, in the backup");
    const file = backUpFirst();
    expect(restoreHere(file, second).keys).toMatchObject({ failure: null });
    expect(member()).toEqual([{ password_hash: "newer, in the backup" }]);
    change(second.dataDir, "newest, in the database before");
    restoreHere(file, second);
    expect(member()).toEqual([{ password_hash: "newest, in the database before" }]);
  });

  test("keep one member if both have invited an address", () => {
    const { first, second, backUpFirst } = part();
    invite(first.dataDir);
    const kept = invite(second.dataDir);
    withRegistryOf(second.dataDir, (registry) => registry.revokeKey(first.keyId));
    const { keys } = restoreHere(backUpFirst(), second);
    expect(keys).toEqual({ minted: 0, revoked: 1, failure: null });
    const active = "SELECT id FROM members WHERE removed_at IS NULL";
    expect(query(second.dataDir, active)).toEqual([{ id: kept }]);
    expect(query(second.dataDir, "SELECT id FROM members")).toHaveLength(2);
  });

  test("keep a member removed whom a newer backup knows as removed", () => {
    const email = "ada@example.com";
    const { first, second, backUpFirst } = part((dataDir) => {
      withMembersOf(dataDir, (members) => members.invite("alpha", email));
    });
    const again = withMembersOf(first.dataDir, (members) => {
      members.remove("alpha", email);
      return members.invite("alpha", email).member.id;
    });
    expect(restoreHere(backUpFirst(), second).keys).toMatchObject({ failure: null });
    const active = "SELECT id FROM members WHERE removed_at IS NULL";
    expect(query(second.dataDir, active)).toEqual([{ id: again }]);
  });

  test("carry over every table except signals", () => {
    const known = ["signals", "audit", ...MERGED_TABLES] as string[];
    const sql = "SELECT name FROM sqlite_schema WHERE type = 'table'";
    const tables = query<{ name: string }>(seed({ signals: 0 }).dataDir, sql);
    expect(tables.map(({ name }) => name).toSorted()).toEqual(known.toSorted());
  });
});

const version = schemaVersion(currentSchema);

/** The program of a year from now, whose desks have a note. */
function nextVersion(): readonly string[] {
  const upgrade = JSON.stringify("ALTER TABLE desks ADD COLUMN note TEXT;");
  return variantOf({
    file: "store/sqlite/migrate.ts",
    find: "{ sql: schemaSql, first: schemaSql, upgrades: [] }",
    replace: `{ sql: schemaSql + ${upgrade}, first: schemaSql, upgrades: [${upgrade}] }`,
  });
}

describe("versions", () => {
  test("a backup of an older version is upgraded, and gets the keys of the newer database", async () => {
    const program = nextVersion();
    const { file, dataDir, key, keyId } = seedWithBackup(20);
    const upgraded = await cli(["key", "revoke", keyId, "--data", dataDir], { program });
    expect(upgraded).toMatchObject({ code: 0 });
    const restored = await cli(["restore", file, "--data", dataDir, "--force"], { program });
    expect(restored.stderr).toContain("0 created and 1 revoked since the backup");
    expect(restored.code).toBe(0);
    expect(query(dataDir, "PRAGMA user_version")).toEqual([{ user_version: version + 1 }]);
    expect(query(dataDir, "SELECT note FROM desks")).toEqual([{ note: null }]);
    const { url } = await startServe([], { dataDir, program });
    expect(await post(url, key, {})).toMatchObject({ status: 401 });
  });

  test("a backup of a newer version is refused; over a newer database, no keys are carried over", async () => {
    const program = nextVersion();
    const { file, dataDir, keyId } = seedWithBackup(20);
    await cli(["key", "revoke", keyId, "--data", dataDir], { program });
    const after = join(temporaryFolder(), "after.db");
    const made = await cli(["backup", after, "--data", dataDir], { program });
    expect(made).toMatchObject({ code: 0 });
    await expectRefusal(after, dataDir, "written by a newer signalbox", "--force");
    const { code, stderr } = await restore(file, dataDir, "--force");
    expect(code).toBe(0);
    expect(stderr).toContain("cannot be carried over:");
    expect(stderr).toContain("written by a newer signalbox");
    expect(query(dataDir, "PRAGMA user_version")).toEqual([{ user_version: version }]);
  });
});

describe("a restore that fails", () => {
  test("changes nothing if the disk is full", async () => {
    const { file, dataDir } = seedWithBackup(20_000);
    const limited = ["bash", "-c", 'ulimit -f 2000 && exec "$@"', "limited"];
    for (const where of [dataDir, newDataDir()]) {
      const before = listFiles(where);
      const args = ["restore", file, "--data", where, "--force"];
      const { code, stderr } = await cli(args, { program: [...limited, ...signalbox] });
      expect(stderr).toMatch(/^signalbox: The disk of \S+ is full, .* free some space/);
      expect(code).toBe(1);
      expect(listFiles(where)).toEqual(before);
    }
  });

  test("replaces nothing if the restored database is not sound", () => {
    const { file, dataDir, path } = seedWithBackup(50);
    const before = listFiles(dataDir);
    copyDatabase(file, restoringPath(path));
    const db = new Database(restoringPath(path));
    db.run("DROP INDEX signals_desk");
    db.close();
    expect(() => putInPlace(path, "20261121T115119Z")).toThrow(/not sound .* nothing was replaced/);
    const after = listFiles(dataDir).filter(([name]) => !name.endsWith(".restoring"));
    expect(after).toEqual(before);
  });

  test("and was cut short after it moved the database is finished by the next one", () => {
    const { file, dataDir, path, keyId } = seedWithBackup(5);
    withRegistryOf(dataDir, (registry) => registry.revokeKey(keyId));
    copyDatabase(file, restoringPath(path));
    const kept = `${path}.before-20261121T115118Z`;
    renameSync(path, kept);
    const serve = (): void => openDatabase(dataDir, "reader").close();
    expect(serve).toThrow(/A restore into .* was cut short: run it again/);
    const restored = { kept, keys: { minted: 0, revoked: 1, failure: null } };
    expect(restoreHere(file, { path })).toEqual(restored);
    serve();
    expect(keysOf(dataDir)).toMatchObject([{ id: keyId, revoked_at: expect.any(Number) }]);
  });
});

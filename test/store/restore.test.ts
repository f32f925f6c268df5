import { Database } from "bun:sqlite";
import { describe, expect, test } from "bun:test";
import {
  chmodSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { checkDeskName } from "../../src/domain/desk/desk.ts";
import { copyDatabase } from "../../src/store/sqlite/copies/copy.ts";
import type { Awaitable } from "../../src/domain/storage/awaitable.ts";
import { restoringPath } from "../../src/store/sqlite/files/folder.ts";
import type { Restored } from "../../src/domain/storage/files.ts";
import { currentSchema, schemaVersion } from "../../src/store/sqlite/files/migrate.ts";
import { openDatabase } from "../../src/store/sqlite/files/open.ts";
import { putInPlace } from "../../src/store/sqlite/copies/restore.ts";
import { verifyDatabase } from "../../src/store/sqlite/copies/verify.ts";
import {
  cli,
  type CliResult,
  expectRefusal,
  freePort,
  signalbox,
  spawn,
  startServe,
} from "../kit/cli.ts";
import {
  contentOf,
  edit,
  editSignals,
  newDataDir,
  type Seeded,
  seed,
  seededId,
  seededUlid,
  withRegistryOf,
} from "./_databases.ts";
import { variantOf } from "../faults/kit/variant.ts";
import { mintKey, post, query, rejection, temporaryFolder, until } from "../kit/setup.ts";
import { recordsIn } from "../kit/records.ts";

const mode = (path: string): string => (statSync(path).mode & 0o777).toString(8);

function restore(file: string, dataDir: string, ...more: string[]): Promise<CliResult> {
  return cli(["restore", file, "--data", dataDir, ...more]);
}

/** How long a restore waits for a lock that nobody gives back. */
const SHORT_WAIT_MS = 100;

/** The note if nothing was carried over. */
function asInBackup(dataDir: string): string {
  const at = `--data ${dataDir}`;
  return `Desks, keys and members are as in the backup: repeat what was done after it, such as revoking keys, removing and resetting members, and archiving desks. List them with: signalbox key list ${at}; signalbox member list DESK ${at}; signalbox desk list ${at}`;
}

/** A database and a backup of it. */
async function seedWithBackup(signals: number): Promise<Seeded & { file: string }> {
  const seeded = await seed({ signals });
  const file = join(temporaryFolder(), "backup.db");
  copyDatabase(seeded.path, file);
  return { ...seeded, file };
}

/** Restores in this process. */
function restoreHere(file: string, { path }: { path: string }, busyMs?: number) {
  copyDatabase(file, restoringPath(path));
  return putInPlace(path, "20261121T115119Z", busyMs);
}

/** A copy of a folder. */
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
    "SELECT id, expires_at, last_used_at, revoked_at, limits FROM api_keys ORDER BY id",
  );
}

/** It fails, and the folder is unchanged. */
async function expectRefused(
  file: string,
  dataDir: string,
  says: string | RegExp,
  ...more: string[]
): Promise<void> {
  const before = listFiles(dataDir);
  await expectRefusal(["restore", file, "--data", dataDir, ...more], says);
  expect(listFiles(dataDir)).toEqual(before);
}

/** Name and hash of every file, except the lock, the log's index and an empty log. */
function listFiles(dataDir: string): Map<string, string> {
  const names = existsSync(dataDir) ? readdirSync(dataDir).toSorted() : [];
  const contents = names
    .filter((name) => !/^serve\.lock|-shm$/.test(name))
    .map((name) => [name, readFileSync(join(dataDir, name))] as const)
    .filter(([name, bytes]) => !name.endsWith("-wal") || bytes.length > 0);
  return new Map(contents.map(([name, bytes]) => [name, Bun.hash(bytes).toString(16)]));
}

/** Damages a table or an index. */
function zeroRootPage(dataDir: string, name: string): void {
  const sql = `SELECT rootpage AS page FROM sqlite_schema WHERE name = '${name}'`;
  const [{ page } = { page: 0 }] = query<{ page: number }>(dataDir, sql);
  const path = join(dataDir, "signalbox.db");
  const bytes = readFileSync(path);
  writeFileSync(path, bytes.fill(0, (page - 1) * 4_096, page * 4_096));
}

describe("restore into an empty folder", () => {
  test("puts the backup there, and a server continues from it", async () => {
    const { file, path, key } = await seedWithBackup(3_000);
    const dataDir = newDataDir();
    const { code, stdout, stderr } = await restore(file, dataDir);
    expect({ code, stdout }).toEqual({ code: 0, stdout: "" });
    expect(stderr).toBe(
      `${asInBackup(dataDir)}\n` +
        `${dataDir} has 3,000 signals, the newest ${seededUlid(3_000)}. Start the server with: signalbox serve --data ${dataDir}\n`,
    );
    expect(readdirSync(dataDir).toSorted()).toEqual(["serve.lock", "signalbox.db"]);
    expect([mode(dataDir), mode(join(dataDir, "signalbox.db"))]).toEqual(["700", "600"]);
    expect(contentOf(join(dataDir, "signalbox.db"))).toEqual(contentOf(path));

    const { url } = await startServe([], { dataDir });
    for (const seq of [1, 1_500, 3_000]) {
      const { status, body } = await post(url, key, { client_signal_id: seededId(seq) });
      expect([status, body["id"]]).toEqual([200, seededUlid(seq)]);
    }
    const next = await post(url, key, { client_signal_id: "new" });
    expect(next.status).toBe(201);
    expect(String(next.body["id"]) > seededUlid(3_000)).toBe(true);
  });

  test("reports the result with --json", async () => {
    const { file } = await seedWithBackup(12);
    const dataDir = newDataDir();
    const { code, stdout } = await restore(file, dataDir, "--json");
    expect(code).toBe(0);
    expect(JSON.parse(stdout)).toEqual({
      data: dataDir,
      signals: 12,
      newest_id: seededUlid(12),
      kept: null,
      keys: null,
      missing_signals: null,
      archived_desks: [],
    });
  });

  test("replaces an empty file, and keeps a log whose database is missing", async () => {
    const { file } = await seedWithBackup(5);
    const killed = await seed({ signals: 5, logged: 3 });
    const log = readFileSync(`${killed.path}-wal`);
    writeFileSync(killed.path, "");
    expect(restoreHere(file, killed)).toMatchObject({
      kept: null,
      keys: null,
      missing_signals: null,
    });
    expect(readFileSync(`${killed.path}.before-20261121T115119Z-wal`).equals(log)).toBe(true);
    expect(verifyDatabase(killed.path)).toMatchObject({ ok: true, signals: 5 });
  });
});

const move = (path: string): void => renameSync(path, `${path}.moved`);
const swap = (path: string): void => {
  move(path);
  copyFileSync(`${path}.moved`, path);
};

describe("restore over a database", () => {
  test("is refused without --force", async () => {
    const { file, dataDir } = await seedWithBackup(5);
    await expectRefused(file, dataDir, /has a database, and nothing was changed: .* add --force/);
  });

  test("is refused while a server runs on it", async () => {
    const { file, dataDir, key } = await seedWithBackup(5);
    const { url } = await startServe([], { dataDir });
    const { code, stderr } = await restore(file, dataDir, "--force");
    expect({ code, stderr }).toEqual({
      code: 1,
      stderr: `signalbox: Another signalbox server or restore is already using ${dataDir}: stop it first, or name another folder with --data DIR.\n`,
    });
    expect(await post(url, key)).toMatchObject({ status: 201 });
    expect(query(dataDir, "SELECT count(*) AS n FROM signals")).toEqual([{ n: 6 }]);
  });

  test("is refused while a server has it open, also without the folder's lock", async () => {
    const { file, dataDir, path, key } = await seedWithBackup(5);
    const { url } = await startServe([], { dataDir });
    expect(() => restoreHere(file, { path }, SHORT_WAIT_MS)).toThrow(
      /signalbox\.db is locked by another process, and nothing was changed: wait for it/,
    );
    expect(readdirSync(dataDir).filter((name) => /before|restoring/.test(name))).toEqual([]);
    expect(await post(url, key)).toMatchObject({ status: 201 });
    expect(query(dataDir, "SELECT count(*) AS n FROM signals")).toEqual([{ n: 6 }]);
  });

  const databaseGone = "the database file was replaced or removed while the server ran: ";
  const lockGone = "the lock file was replaced or removed while the server ran, so another server";
  test.each([
    ["its database is removed", "signalbox.db", move, databaseGone],
    ["its database is replaced", "signalbox.db", swap, databaseGone],
    ["its lock file is removed", "serve.lock", rmSync, lockGone],
  ] as const)("a server ends if %s", async (_, name, damage, reason) => {
    const { dataDir } = await seedWithBackup(5);
    const server = await startServe([], { dataDir });
    damage(join(dataDir, name));
    expect(await server.exited).toBe(1);
    expect(server.log().at(-1)).toMatchObject({
      level: "fatal",
      reason: expect.stringContaining(reason),
    });
  });

  test("a server that waits for its first certificate ends if its database file is removed", async () => {
    const { path, dataDir } = await seedWithBackup(5);
    const acme = [
      "--acme-domain=signals.test",
      "--acme-directory=https://127.0.0.1:1/directory",
      `--acme-http-listen=127.0.0.1:${await freePort()}`,
    ];
    const server = await startServe(acme, { dataDir, until: "no certificate could be obtained" });
    renameSync(path, `${path}.moved`);
    expect(await server.exited).toBe(1);
    expect(server.log().at(-1)).toMatchObject({
      level: "fatal",
      msg: expect.stringMatching(/^storage failed: /),
      reason: `the database file was replaced or removed while the server ran: ${path}`,
    });
  });

  test("with --force keeps the previous database and the log of a killed server", async () => {
    const { file } = await seedWithBackup(5);
    const killed = await seed({ signals: 2_000, logged: 30 });
    const before = contentOf(duplicate(killed.dataDir).path);
    expect(before.signals.rows).toBe(2_030);
    const { code, stderr } = await restore(file, killed.dataDir, "--force");
    expect(code).toBe(0);
    expect(stderr).toContain(
      "\n2,025 signals are not in the backup: only the previous database has them.\n",
    );
    const kept = /^The previous database is kept as (.+)$/m.exec(stderr)?.[1] ?? "";
    expect(kept).toMatch(/signalbox\.db\.before-\d{8}T\d{6}Z$/);
    expect(contentOf(kept)).toEqual(before);
    expect(contentOf(killed.path).signals.rows).toBe(5);
    // One file, without a log.
    expect(existsSync(`${kept}-wal`)).toBe(false);
    const names = readdirSync(killed.dataDir).filter((name) => !name.includes(".before-"));
    expect(names.toSorted()).toEqual(["serve.lock", "signalbox.db"]);
    // It can be restored in turn.
    expect(await restore(kept, killed.dataDir, "--force")).toMatchObject({ code: 0 });
    expect(contentOf(killed.path).signals).toEqual(before.signals);
  });

  test("does not wait for damaged signals to carry over the keys", async () => {
    const { file, dataDir, path, keyId } = await seedWithBackup(2_000);
    await withRegistryOf(dataDir, (registry) => registry.revokeKey(keyId));
    zeroRootPage(dataDir, "sqlite_autoindex_signals_1");
    const restored = restoreHere(file, { path });
    expect(restored).toMatchObject({ keys: { revoked: 1 }, missing_signals: null });
    expect(keysOf(dataDir)).toMatchObject([{ revoked_at: expect.any(Number) }]);
  });

  test("twice within a second keeps both", async () => {
    const { file } = await seedWithBackup(5);
    const there = await seed({ signals: 8, logged: 2 });
    const first = restoreHere(file, there);
    const second = restoreHere(file, there);
    expect([first.kept, second.kept]).toEqual([
      `${there.path}.before-20261121T115119Z`,
      `${there.path}.before-20261121T115119Z-2`,
    ]);
    expect(contentOf(first.kept ?? "").signals.rows).toBe(10);
    expect(contentOf(second.kept ?? "").signals.rows).toBe(5);
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
  ];
  test.each(damages)("%s", async (_name, damage, says) => {
    const { file, dataDir } = await seedWithBackup(3_000);
    damage(file);
    await expectRefused(file, dataDir, says, "--force");
    const empty = newDataDir();
    await expectRefused(file, empty, says);
    expect(existsSync(empty)).toBe(false);
  });

  test("it is a folder", async () => {
    const dataDir = newDataDir();
    const folder = temporaryFolder();
    await expectRefused(folder, dataDir, `${folder} is a folder: name a backup in it, such as`);
    expect(existsSync(dataDir)).toBe(false);
  });
});

describe("keys", () => {
  test("created, revoked and rotated since the backup stay so", async () => {
    const seeded = await seed({ signals: 10 });
    const ids = await withRegistryOf(seeded.dataDir, async (registry) => {
      const mint = () => mintKey(registry, "alpha");
      return { revoked: await mint(), rotated: await mint() };
    });
    const file = join(temporaryFolder(), "backup.db");
    copyDatabase(seeded.path, file);
    const { minted } = await withRegistryOf(seeded.dataDir, async (registry) => {
      await registry.revokeKey(ids.revoked.keyId);
      await mintKey(registry, "beta", { limits: { networks: ["203.0.113.0/24"] } });
      return registry.rotateKey(ids.rotated.keyId, { overlapMs: 60_000, expiresInMs: null });
    });
    const before = keysOf(seeded.dataDir);
    const { code, stderr } = await restore(file, seeded.dataDir, "--force");
    expect(code).toBe(0);
    expect(stderr).toContain(
      "Carried over from the previous database: 2 keys that the backup does not have, and 1 revocation. The rest is as in the backup.\n",
    );
    expect(keysOf(seeded.dataDir)).toEqual(before);
    expect(before).toHaveLength(5);
    const { url } = await startServe([], { dataDir: seeded.dataDir });
    expect(await post(url, ids.revoked.key)).toMatchObject({ status: 401 });
    expect(await post(url, minted.key)).toMatchObject({ status: 201 });
    expect(await post(url, ids.rotated.key)).toMatchObject({ status: 201 });
  });

  test("of another server are not carried over, with a note", async () => {
    const { file, keyId } = await seedWithBackup(5);
    const other = await seed({ signals: 5 });
    const fresh = newDataDir();
    openDatabase(fresh, "command").close();
    for (const dataDir of [other.dataDir, fresh]) {
      const { stderr } = await restore(file, dataDir, "--force");
      expect(stderr).toContain(
        `\nNothing was carried over from the previous database: it has none of the backup's desks\n${asInBackup(dataDir)}\n`,
      );
      expect(keysOf(dataDir).map(({ id }) => id)).toEqual([keyId]);
    }
  });

  test("of a damaged database cannot be carried over, with a note", async () => {
    const { file, dataDir, path, keyId } = await seedWithBackup(2_000);
    await withRegistryOf(dataDir, (registry) => registry.revokeKey(keyId));
    zeroRootPage(dataDir, "api_keys");
    const bytes = readFileSync(path);
    const { code, stderr } = await restore(file, dataDir, "--force");
    expect(code).toBe(0);
    expect(stderr).toMatch(
      /\nSignals that only .* cannot be counted\.\nNothing was carried over .*: damaged: .+\nDesks, keys and members are as in the backup/,
    );
    expect(keysOf(dataDir)).toMatchObject([{ id: keyId, revoked_at: null }]);
    const kept = /kept as (.+)$/m.exec(stderr)?.[1] ?? "";
    expect(readFileSync(kept).equals(bytes)).toBe(true);
  });
});

/** Two databases with a shared history: `second` was restored from a backup of `first`. */
async function part(common: (dataDir: string) => Awaitable<unknown> = () => {}) {
  const first = await seed({ signals: 5 });
  await common(first.dataDir);
  const dataDir = newDataDir();
  mkdirSync(dataDir, { mode: 0o700 });
  const second = { dataDir, path: join(dataDir, "signalbox.db") };
  const restoreFirst = (): Restored => {
    const backup = join(temporaryFolder(), "backup.db");
    copyDatabase(first.path, backup);
    return restoreHere(backup, second);
  };
  restoreFirst();
  return { first, second, restoreFirst };
}

/** `desk` null: a read key for all desks. */
function mintIn(dataDir: string, desk: string | null = "alpha"): Promise<string> {
  return withRegistryOf(dataDir, async (registry) => {
    if (desk !== null) return (await mintKey(registry, desk)).keyId;
    const all = { scope: "read", desk, label: null, expiresInMs: null } as const;
    return (await registry.mintKey(all)).record.id;
  });
}

const EMAIL = "ada@example.com";

/** A member with a password, a passkey and an open link. */
async function addMember(dataDir: string): Promise<void> {
  using db = openDatabase(dataDir, "command");
  const { members, passkeys } = recordsIn(db);
  const { token, member } = await members.invite("alpha", EMAIL);
  await members.spendLink(token, { passwordHash: "a password" });
  const passkey = { id: "one", name: "Laptop", public_key: new Uint8Array([1]), counter: 0 };
  await passkeys.add({ memberId: member.id, client: null }, { ...passkey, transports: [] });
  await members.reset("alpha", EMAIL);
}

/** All rows but the signals'. */
function rowsOf(dataDir: string): object[][] {
  const tables = ["desks", "api_keys", "members", "invitations", "passkeys", "audit"];
  return tables.map((table) => query<object>(dataDir, `SELECT * FROM ${table} ORDER BY id`));
}

const setRole = (role: string) => `UPDATE members SET role = '${role}'`;

describe("two databases with a shared history", () => {
  test("count the signals that only the previous database has, older than the backup's or not", async () => {
    const { first, second, restoreFirst } = await part();
    const rest = "desk_id, key_id, received_at, source, type, symbol, side, hash";
    for (const [path, prefix] of [
      [first.path, "01HF9"],
      [second.path, "01HF8"],
    ] as const) {
      editSignals(
        path,
        `INSERT INTO signals (seq, id, ${rest})
         SELECT seq + 5, replace(id, '01HF7', '${prefix}'), ${rest} FROM signals`,
      );
    }
    expect(restoreFirst()).toMatchObject({ missing_signals: 5 });
    expect(query(second.dataDir, "SELECT count(*) AS n FROM signals")).toEqual([{ n: 10 }]);
  });

  test.each([
    ["desks", "archived_at"],
    ["api_keys", "expires_at"],
    ["api_keys", "revoked_at"],
    ["members", "removed_at"],
    ["invitations", "spent_at"],
    ["passkeys", "removed_at"],
  ])("%s: the earlier %s of the two holds", async (table, column) => {
    const set = (at: number) => `UPDATE ${table} SET ${column} = ${at}`;
    const ended = `SELECT DISTINCT ${column} AS at FROM ${table}`;
    const { first, second, restoreFirst } = await part(addMember);
    edit(second.path, set(9));
    restoreFirst();
    expect(query(second.dataDir, ended)).toEqual([{ at: 9 }]);
    edit(first.path, set(8));
    restoreFirst();
    expect(query(second.dataDir, ended)).toEqual([{ at: 8 }]);
    expect(verifyDatabase(second.path)).toMatchObject({ ok: true });
  });

  test("a password that was locked stays locked, and no other one is", async () => {
    const { first, second, restoreFirst } = await part(addMember);
    const hash = "SELECT password_hash AS hash FROM members";
    edit(second.path, "UPDATE members SET password_hash = '!' || password_hash");
    restoreFirst();
    expect(query(second.dataDir, hash)).toEqual([{ hash: "!a password" }]);
    edit(first.path, "UPDATE members SET password_hash = 'another'");
    restoreFirst();
    expect(query(second.dataDir, hash)).toEqual([{ hash: "another" }]);
  });

  test("a desk that keeps nothing of what requests sent stays so", async () => {
    const { first, second, restoreFirst } = await part(addMember);
    const kept = "SELECT keeps_sent AS kept FROM desks";
    edit(second.path, "UPDATE desks SET keeps_sent = 0");
    restoreFirst();
    expect(query(second.dataDir, kept)).toEqual([{ kept: 0 }]);
    edit(second.path, "UPDATE desks SET keeps_sent = 1");
    edit(first.path, "UPDATE desks SET keeps_sent = 0");
    restoreFirst();
    expect(query(second.dataDir, kept)).toEqual([{ kept: 0 }]);
  });

  test("who was made a viewer in one of the two stays one", async () => {
    const { first, second, restoreFirst } = await part(addMember);
    const role = () => query(second.dataDir, "SELECT role FROM members");
    edit(second.path, setRole("viewer"));
    restoreFirst();
    expect(role()).toEqual([{ role: "viewer" }]);
    edit(second.path, setRole("manager"));
    restoreFirst();
    expect(role()).toEqual([{ role: "manager" }]);
    edit(first.path, setRole("viewer"));
    restoreFirst();
    expect(role()).toEqual([{ role: "viewer" }]);
  });

  test("take everything else from the backup", async () => {
    const { first, second, restoreFirst } = await part(addMember);
    const before = rowsOf(first.dataDir);
    await withRegistryOf(second.dataDir, async (registry) => {
      await registry.limitKeys("alpha", 3);
      await registry.requirePasskeys("alpha", true);
      await registry.relabelKey(first.keyId, "later");
      await registry.renameDesk("alpha", "omega");
    });
    using db = openDatabase(second.dataDir, "command");
    await recordsIn(db).members.invite("omega", "bob@example.com");
    edit(
      second.path,
      "UPDATE members SET password_hash = 'newer'",
      "UPDATE passkeys SET counter = 9",
    );
    db.close();
    expect(restoreFirst().keys).toMatchObject({ minted: 0, revoked: 0, failure: null });
    expect(rowsOf(second.dataDir)).toEqual(before);
  });

  test("report keys that only the backup has, and archived desks", async () => {
    const { first, second } = await part();
    await mintIn(first.dataDir, "beta");
    await withRegistryOf(first.dataDir, (registry) => registry.archiveDesk("alpha", true));
    const { stderr } = await restore(first.path, second.dataDir, "--force");
    expect(stderr).toContain(
      `\nCarried over from the previous database: 0 keys that the backup does not have, and 0 revocations. The rest is as in the backup.\n1 key is only in the backup: check it with: signalbox key list --data ${second.dataDir}\nArchived, so their keys and members are refused: alpha. Bring a desk back with: signalbox desk archive DESK --undo --data ${second.dataDir}\n`,
    );
  });

  test("keep each key with its desk, whatever the desks' row numbers and names are", async () => {
    const { first, second, restoreFirst } = await part((dataDir) => mintIn(dataDir, "beta"));
    const long = "n".repeat(63);
    const inBackup = await mintIn(first.dataDir, long);
    await withRegistryOf(first.dataDir, (registry) => registry.renameDesk("beta", "gamma"));
    const minted = {
      alpha: await mintIn(second.dataDir),
      gamma: await mintIn(second.dataDir, "beta"),
      delta: await mintIn(second.dataDir, "delta"),
      renamed: await mintIn(second.dataDir, long),
      all: await mintIn(second.dataDir, null),
    };
    // The second round must change nothing.
    for (const _ of [1, 2]) {
      expect(restoreFirst().keys).toMatchObject({ minted: 5, revoked: 0, failure: null });
      const keys = await withRegistryOf(second.dataDir, (registry) => registry.listKeys(null));
      const deskOf = (id: string) => keys.find((key) => key.id === id)?.desk;
      expect(Object.values(minted).map(deskOf)).toEqual([
        "alpha",
        "gamma",
        "delta",
        expect.stringMatching(/^n{27}\.restored-[a-z0-9]{26}$/),
        null,
      ]);
      expect(deskOf(inBackup)).toBe(long);
      const names = keys.flatMap(({ desk }) => desk ?? []);
      expect(names.map(checkDeskName)).toEqual(names);
      expect(verifyDatabase(second.path)).toMatchObject({ ok: true });
    }
  });
});

const version = schemaVersion(currentSchema);

/** A program of the next version, whose desks have a note. */
function nextVersion(): readonly string[] {
  const upgrade = JSON.stringify("ALTER TABLE desks ADD COLUMN note TEXT;");
  return variantOf({
    file: "store/sqlite/files/migrate.ts",
    find: "{ sql: schemaSql, first: schemaSql, upgrades: [] }",
    replace: `{ sql: schemaSql + ${upgrade}, first: schemaSql, upgrades: [${upgrade}] }`,
  });
}

describe("versions", () => {
  test("a backup of an older version is upgraded, and gets the keys of the newer database", async () => {
    const program = nextVersion();
    const { file, dataDir, key, keyId } = await seedWithBackup(20);
    const upgraded = await cli(["key", "revoke", keyId, "--data", dataDir], { program });
    expect(upgraded).toMatchObject({ code: 0 });
    const restored = await cli(["restore", file, "--data", dataDir, "--force"], { program });
    expect(restored.stderr).toContain("0 keys that the backup does not have, and 1 revocation.");
    expect(restored.code).toBe(0);
    expect(query(dataDir, "PRAGMA user_version")).toEqual([{ user_version: version + 1 }]);
    expect(query(dataDir, "SELECT note FROM desks")).toEqual([{ note: null }]);
    const { url } = await startServe([], { dataDir, program });
    expect(await post(url, key)).toMatchObject({ status: 401 });
  });

  test("a backup of a newer version is refused; over a newer database, no keys are carried over", async () => {
    const program = nextVersion();
    const { file, dataDir, keyId } = await seedWithBackup(20);
    await cli(["key", "revoke", keyId, "--data", dataDir], { program });
    const after = join(temporaryFolder(), "after.db");
    const made = await cli(["backup", after, "--data", dataDir], { program });
    expect(made).toMatchObject({ code: 0 });
    await expectRefused(after, dataDir, "written by a newer signalbox", "--force");
    const { code, stderr } = await restore(file, dataDir, "--force");
    expect(code).toBe(0);
    expect(stderr).toContain("Nothing was carried over");
    expect(stderr).toContain("written by a newer signalbox");
    expect(query(dataDir, "PRAGMA user_version")).toEqual([{ user_version: version }]);
  });
});

/** Pauses after the carry-over, with the file `.carried-over` as the sign, until there is `.go-on`. */
function pausing(): readonly string[] {
  const find = "  refuseUnsound(restoring);\n";
  const pause =
    'writeFileSync(`${path}.carried-over`, ""); while (!existsSync(`${path}.go-on`)) Bun.sleepSync(5);\n';
  const names = "import { existsSync, readdirSync,";
  return variantOf(
    { file: "store/sqlite/copies/restore.ts", find, replace: pause + find },
    { file: "store/sqlite/copies/restore.ts", find: names, replace: `${names} writeFileSync,` },
  );
}

function hasOpen(pid: number, path: string): boolean {
  const folder = `/proc/${pid}/fd`;
  try {
    return readdirSync(folder).some((fd) => readlinkSync(join(folder, fd)) === path);
  } catch {
    // The process has ended, or has closed a file meanwhile.
    return false;
  }
}

describe("commands during a restore", () => {
  test("a revocation is made, or refused with what to type", async () => {
    const { file, dataDir, path, keyId } = await seedWithBackup(5);
    const program = pausing();
    const restoring = cli(["restore", file, "--data", dataDir, "--force"], { program });
    await until(() => existsSync(`${path}.carried-over`));
    const revoke = ["key", "revoke", keyId, "--data", dataDir];
    const revoking = spawn(revoke, {});
    await until(() => revoking.exitCode !== null || hasOpen(revoking.pid, path));
    writeFileSync(`${path}.go-on`, "");
    expect(await restoring).toMatchObject({ code: 0 });
    if ((await revoking.exited) !== 0) {
      expect(await new Response(revoking.stderr).text()).toContain("run it again");
      expect(await cli(revoke)).toMatchObject({ code: 0 });
    }
    expect(keysOf(dataDir)).toMatchObject([{ revoked_at: expect.any(Number) }]);
  });

  test("a change is refused if the database was replaced while it waited", async () => {
    const { file, dataDir, path, keyId } = await seedWithBackup(5);
    await withRegistryOf(dataDir, async (registry) => {
      renameSync(path, `${path}.moved`);
      copyFileSync(file, path);
      expect(String(await rejection(registry.revokeKey(keyId)))).toContain(
        "The database was replaced by a restore while this command waited: run it again.",
      );
    });
    expect(keysOf(dataDir)).toMatchObject([{ revoked_at: null }]);
  });

  test("a command that opens the database while the restore moves it is told to run again", async () => {
    const { dataDir, path } = await seedWithBackup(5);
    chmodSync(path, 0o640);
    const onTightened = (): void => {
      renameSync(path, `${path}.moved`);
      writeFileSync(restoringPath(path), "");
    };
    expect(() => openDatabase(dataDir, "command", { onTightened })).toThrow(
      /A restore into .* was interrupted: run it again/,
    );
  });

  test("the restore waits for a command, and carries its change over", async () => {
    const { file, dataDir, path, keyId } = await seedWithBackup(5);
    const db = openDatabase(dataDir, "command");
    db.run("BEGIN IMMEDIATE");
    const restoring = restore(file, dataDir, "--force");
    await until(() => existsSync(restoringPath(path)));
    await Bun.sleep(500);
    db.query("UPDATE api_keys SET revoked_at = 7 WHERE id = ?").run(keyId);
    db.run("COMMIT");
    db.close();
    expect(await restoring).toMatchObject({ code: 0 });
    expect(keysOf(dataDir)).toMatchObject([{ revoked_at: 7 }]);
  });

  test("a lock that stays is no damage: nothing is changed", async () => {
    const { file, dataDir, path, keyId } = await seedWithBackup(5);
    await withRegistryOf(dataDir, (registry) => registry.revokeKey(keyId));
    edit(path, "PRAGMA journal_mode = DELETE");
    const db = new Database(path);
    db.run("BEGIN EXCLUSIVE");
    expect(() => restoreHere(file, { path }, SHORT_WAIT_MS)).toThrow(
      /^\S+ is locked by another process, and nothing was changed: wait for it or end it, then run the restore again\.$/,
    );
    db.run("ROLLBACK");
    expect(readdirSync(dataDir).toSorted()).toEqual(["signalbox.db"]);
    expect(keysOf(dataDir)).toMatchObject([{ revoked_at: expect.any(Number) }]);
    db.close();
  });
});

describe("a restore that fails", () => {
  test("changes nothing if the disk is full", async () => {
    const { file, dataDir } = await seedWithBackup(20_000);
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

  test("replaces nothing if the restored database is not sound", async () => {
    const { file, dataDir, path } = await seedWithBackup(50);
    edit(path, "PRAGMA journal_mode = DELETE");
    const before = listFiles(dataDir);
    copyDatabase(file, restoringPath(path));
    edit(restoringPath(path), "DROP INDEX signals_desk");
    expect(() => putInPlace(path, "20261121T115119Z")).toThrow(/not sound .* nothing was replaced/);
    const after = listFiles(dataDir);
    after.delete("signalbox.db.restoring");
    expect(after).toEqual(before);
  });

  test("and was interrupted after it moved the database is finished by the next one", async () => {
    const { file, dataDir, path, keyId } = await seedWithBackup(5);
    await withRegistryOf(dataDir, (registry) => registry.revokeKey(keyId));
    copyDatabase(file, restoringPath(path));
    const kept = `${path}.before-20261121T115118Z`;
    renameSync(path, kept);
    const serve = (): void => openDatabase(dataDir, "reader").close();
    expect(serve).toThrow(/A restore into .* was interrupted: run it again/);
    const keys = { minted: 0, revoked: 1, failure: null };
    const restored = { kept, keys, missing_signals: 0 };
    expect(restoreHere(file, { path })).toMatchObject(restored);
    serve();
    expect(keysOf(dataDir)).toMatchObject([{ id: keyId, revoked_at: expect.any(Number) }]);
  });
});

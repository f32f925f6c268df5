/** A restore drill of one backup: what passes, what does not, what it leaves behind, and `verify --drill`. */
import { Database } from "bun:sqlite";
import { describe, expect, test } from "bun:test";
import {
  copyFileSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { partialPath } from "../../src/lib/files.ts";
import { copyDatabase } from "../../src/store/sqlite/copies/copy.ts";
import { drillBackup } from "../../src/store/sqlite/copies/drill.ts";
import { DATABASE_NAME } from "../../src/store/sqlite/files/folder.ts";
import { rejection, signal, startTestApp, temporaryFolder } from "../kit/setup.ts";
import { cli, expectRefusal } from "../kit/cli.ts";
import {
  changePage,
  dropLastCell,
  edit,
  newDataDir,
  seed,
  seededUlid,
  withRegistryOf,
} from "../store/_databases.ts";

const SIGNALS = 1_990;

async function backedUp(signals = SIGNALS) {
  const { dataDir, path } = await seed({ signals });
  const dir = temporaryFolder();
  const file = join(dir, "signalbox.db");
  copyDatabase(path, file);
  const drill = () => drillBackup(file, dataDir, partialPath(join(dataDir, "drill")));
  const expectFailure = async (says: string | RegExp) => {
    const before = [readdirSync(dataDir), readdirSync(dir), readFileSync(path)];
    const error = await rejection(drill());
    expect(String(error instanceof Error ? error.message : error)).toMatch(says);
    expect([readdirSync(dataDir), readdirSync(dir), readFileSync(path)]).toEqual(before);
  };
  return { dataDir, path, dir, file, drill, expectFailure };
}

describe("a drill passes", () => {
  test("if the database has all of the backup as it is, and more", async () => {
    const { dataDir, path, drill } = await backedUp();
    const sound = { signals: SIGNALS, newest_id: seededUlid(SIGNALS) };
    expect(await drill()).toEqual({ ...sound, newer_signals: 0 });
    addSignal(path, SIGNALS + 1);
    await withRegistryOf(dataDir, (registry) => registry.createDesk("beta", { ifMissing: false }));
    expect(await drill()).toEqual({ ...sound, newer_signals: 1 });
    expect(readdirSync(dataDir).filter((name) => name.startsWith("."))).toEqual([]);
  });

  test("beside a running server, whose newest signals are in its log, although a key was revoked", async () => {
    const { dataDir, registry, post, keyId } = await startTestApp();
    expect((await post(signal)).status).toBe(201);
    const file = join(temporaryFolder(), "b.db");
    copyDatabase(join(dataDir, DATABASE_NAME), file);
    expect((await post(signal)).status).toBe(201);
    await registry.revokeKey(keyId);
    const drilled = await drillBackup(file, dataDir, partialPath(join(dataDir, "drill")));
    expect(drilled).toMatchObject({ signals: 1, newer_signals: 1 });
  });

  test("with an empty database", async () => {
    const { drill } = await backedUp(0);
    expect(await drill()).toEqual({ signals: 0, newest_id: null, newer_signals: 0 });
  });
});

/** Adds a copy of the first signal, with another id. */
function addSignal(path: string, seq: number): void {
  using db = new Database(path);
  const row = db.query<Record<string, string>, []>("SELECT * FROM signals WHERE seq = 1").get();
  const values = { ...row, seq, id: seededUlid(seq), client_signal_id: null };
  const names = Object.keys(values);
  db.query(
    `INSERT INTO signals (${names.join(", ")}) VALUES (${names.map(() => "?").join(", ")})`,
  ).run(...Object.values(values));
}

describe("a drill fails if", () => {
  const differences: [string, (file: string, path: string) => void, RegExp][] = [
    [
      "the disk has changed a value in the database",
      (_file, path) => edit(path, "UPDATE signals SET price = 84000 WHERE seq = 1700"),
      new RegExp(`differs from the database: of signal ${seededUlid(1_700)}, it has another price`),
    ],
    [
      "a key is another",
      (file) => edit(file, "UPDATE api_keys SET key_hash = zeroblob(32)"),
      /in api_keys, \w{26} is not as in the database/,
    ],
    [
      "a desk is unknown",
      (file) =>
        edit(
          file,
          "INSERT INTO desks (uid, name, created_at) VALUES ('01HF7000000000000000000001', 'x', 1)",
        ),
      /in desks, 01HF7000000000000000000001 is not as in the database/,
    ],
  ];
  test.each(differences)("%s", async (_name, change, says) => {
    const { file, path, expectFailure } = await backedUp();
    change(file, path);
    await expectFailure(says);
  });

  test("the database lacks a signal that the backup has", async () => {
    const { path, expectFailure } = await backedUp();
    edit(path, "DELETE FROM signals WHERE seq = 1990");
    await expectFailure(/it has 1990 signals where the database has 1989/);
  });

  test("the backup lacks a signal", async () => {
    const { file, expectFailure } = await backedUp(900);
    edit(file, "DELETE FROM signals WHERE seq = 450");
    await expectFailure(new RegExp(`it lacks signal ${seededUlid(450)}`));
  });

  const damages: [string, (file: string) => void, RegExp][] = [
    [
      "the disk has changed a value in it",
      (file) => edit(file, "UPDATE signals SET price = 84000 WHERE seq = 1700"),
      /The copy of \S+ is not sound \(hashes: .*check the original/,
    ],
    [
      "a page of it is gone",
      (file) => changePage(file, 13, '"number":1000,', (page) => void page.fill(0)),
      /is damaged \(.*\): do not restore it, use another backup|is not sound \(/,
    ],
    [
      "a row is gone from its page",
      (file) => changePage(file, 13, '"number":900,', dropLastCell),
      /The copy of \S+ is not sound \(integrity: .*check the original/,
    ],
    [
      "it is cut off",
      (file) => cut(file),
      /is damaged \(.+\): do not restore it, use another backup/,
    ],
    [
      "it is encrypted, or another program's",
      (file) => writeFileSync(file, Buffer.alloc(8_192, 0xa7)),
      /is not a Signalbox database/,
    ],
    ["it is empty", (file) => writeFileSync(file, ""), /schema|not a Signalbox database/],
  ];
  test.each(damages)("%s", async (_name, damage, says) => {
    const { file, expectFailure } = await backedUp();
    damage(file);
    await expectFailure(says);
  });

  test("it is of another database", async () => {
    const { dataDir } = await seed({ signals: SIGNALS });
    const { file } = await backedUp(3);
    const error = await rejection(drillBackup(file, dataDir, partialPath(join(dataDir, "drill"))));
    expect(String(error)).toContain("is not as in the database");
  });

  test("there is no database to compare it with", async () => {
    const { file } = await backedUp();
    const dataDir = newDataDir();
    mkdirSync(dataDir, { recursive: true, mode: 0o700 });
    const error = await rejection(drillBackup(file, dataDir, partialPath(join(dataDir, "drill"))));
    expect(String(error)).toContain("There is no database in");
    expect(readdirSync(dataDir)).toEqual([]);
  });
});

function cut(file: string): void {
  writeFileSync(file, readFileSync(file).subarray(0, 20_000));
}

test("the next start of a server, or drill, removes what a killed drill has left", async () => {
  const { dataDir, drill, file } = await backedUp();
  const leave = (): string => {
    const left = partialPath(join(dataDir, "drill"));
    mkdirSync(left, { mode: 0o700 });
    writeFileSync(join(left, "lock"), "");
    copyFileSync(file, join(left, "copy.db"));
    return left;
  };
  const hidden = () => readdirSync(dataDir).filter((name) => name.startsWith("."));
  leave();
  await drill();
  expect(hidden()).toEqual([]);
  const left = leave();
  expect(statSync(left).isDirectory()).toBe(true);
  const { stop } = await startTestApp({ dataDir });
  expect(hidden()).toEqual([]);
  await stop();
});

describe("verify --drill", () => {
  test("takes a backup or the newest in a folder, and says what was the same", async () => {
    const { dataDir, path, dir } = await backedUp(900);
    const [old, newest] = ["signalbox-20260101T000000Z.db", "signalbox-20260102T000000Z.db"].map(
      (name) => join(dir, name),
    ) as [string, string];
    writeFileSync(old, "damaged");
    copyDatabase(path, newest);
    addSignal(path, 901);
    const drilled = { signals: 900, newest_id: seededUlid(900), newer_signals: 1 };
    for (const named of [dir, newest]) {
      const typed = ["verify", "--drill", named, "--data", dataDir, "--json"];
      const { code, stdout, stderr } = await cli(typed);
      expect(code).toBe(0);
      expect(JSON.parse(stdout)).toEqual({ file: newest, ...drilled });
      expect(stderr).toBe(
        `${newest} was restored, verified, and removed again. Each of its 900 signals, the newest ${seededUlid(900)}, is as in the database, which has 1 newer.\n`,
      );
    }
    expect(readdirSync(dataDir).filter((name) => name.startsWith("."))).toEqual([]);
    await expectRefusal(
      ["verify", "--drill", old, "--data", dataDir],
      "is not a Signalbox database",
    );
  });

  test("says why a backup does not pass, or is none", async () => {
    const { dataDir, path, file } = await backedUp();
    const drill = ["verify", "--data", dataDir, "--drill"];
    edit(path, "UPDATE signals SET symbol = 'ETH/USDT' WHERE seq = 7");
    await expectRefusal([...drill, file], "it has another symbol. One of the two is damaged");
    cut(file);
    await expectRefusal([...drill, file], "do not restore it, use another backup");
    const empty = temporaryFolder();
    await expectRefusal([...drill, empty], "has no backup of --backup-dir or --every: name a file");
    await expectRefusal([...drill, join(empty, "none")], "There is no file");
  });
});

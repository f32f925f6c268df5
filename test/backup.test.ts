import { Database } from "bun:sqlite";
import { describe, expect, setDefaultTimeout, test } from "bun:test";
import {
  chmodSync,
  closeSync,
  cpSync,
  existsSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
  writeSync,
} from "node:fs";
import { join } from "node:path";
import { UserError } from "../src/domain/errors.ts";
import { copyDatabase, partialPath } from "../src/store/sqlite/copy.ts";
import { copyInProcess, type Progress } from "../src/store/sqlite/copying.ts";
import { verifyDatabase } from "../src/store/sqlite/verify.ts";
import {
  cli,
  type CliOptions,
  type CliResult,
  signalbox,
  mintKey,
  spawn,
  startServe,
} from "./_cli.ts";
import {
  contentOf,
  findPartial,
  newDataDir,
  type Partial,
  seed,
  seededUlid,
  storeTwice,
  withRegistryOf,
} from "./_databases.ts";
import { startLoad } from "./_load.ts";
import { callUrl, onCleanup, rejection, signal, temporaryFolder } from "./_setup.ts";

setDefaultTimeout(120_000);

/** Takes a copy so long that it can be met under way. */
const MANY = 50_000;

const mode = (path: string): string => (statSync(path).mode & 0o777).toString(8);

function backUp(file: string, dataDir: string, ...more: string[]): Promise<CliResult> {
  return cli(["backup", file, "--data", dataDir, ...more]);
}

/** Code 1, nothing on stdout, and one sentence; the folder of the file is as it was. */
async function expectRefusal(file: string, dataDir: string, says: string | RegExp): Promise<void> {
  const folder = join(file, "..");
  const before = existsSync(folder) ? readdirSync(folder) : null;
  const { code, stdout, stderr } = await backUp(file, dataDir);
  expect(stderr).toMatch(/^signalbox: [^\n]+\n$/);
  expect(stderr).toMatch(says);
  expect({ code, stdout }).toEqual({ code: 1, stdout: "" });
  expect(existsSync(folder) ? readdirSync(folder) : null).toEqual(before);
}

interface Started {
  readonly pid: number;
  readonly ended: Promise<CliResult>;
}

/** Starts `signalbox backup`. */
function startBackup(file: string, dataDir: string, options: CliOptions = {}): Started {
  const child = spawn(["backup", file, "--data", dataDir], options);
  const ended = Promise.all([
    child.exited,
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
  ]).then(([code, stdout, stderr]) => ({ code, stdout, stderr }));
  return { pid: child.pid, ended };
}

/** Waits until so many bytes of a copy are written, and stops its process there. */
async function stopCopy(folder: string, bytes = 1): Promise<Partial> {
  for (;;) {
    const partial = findPartial(folder);
    if (partial !== null && statSync(partial.path).size >= bytes) {
      process.kill(partial.pid, "SIGSTOP");
      onCleanup(() => send(partial.pid, "SIGKILL"));
      return partial;
    }
    await Bun.sleep(1);
  }
}

/** False where there is no such process any more. */
function send(pid: number, name: NodeJS.Signals | 0): boolean {
  try {
    return process.kill(pid, name);
  } catch {
    return false;
  }
}

/** Whoever has taken over a process whose parent has ended may take a moment to see that it has ended, too. */
async function untilGone(pid: number): Promise<void> {
  while (send(pid, 0)) await Bun.sleep(1);
}

async function post(url: string, key: string, clientId: string): Promise<number> {
  const { status } = await callUrl(url, "/v1/signals", {
    method: "POST",
    headers: { Authorization: `Bearer ${key}`, "Content-Type": "application/json" },
    body: JSON.stringify({ ...signal, client_signal_id: clientId }),
  });
  return status;
}

describe("a backup", () => {
  test("of a stopped server has everything, for its owner's eyes only, and leaves the original alone", async () => {
    const { dataDir, path } = seed({ signals: 5_000, logged: 20 });
    const folder = temporaryFolder();
    const file = join(folder, "signalbox.db");
    const before = readFileSync(path);
    const { code, stdout, stderr } = await backUp(file, dataDir);
    expect({ code, stdout }).toEqual({ code: 0, stdout: "" });
    expect(stderr).toBe(
      `${file}: 5020 signals, the newest ${seededUlid(5_020)}, verified. Bring it back with: signalbox restore ${file} --data ${dataDir}\n`,
    );
    expect(readdirSync(folder)).toEqual(["signalbox.db"]);
    expect(mode(file)).toBe("600");
    expect(contentOf(file)).toEqual(contentOf(path));
    expect(verifyDatabase(file)).toMatchObject({ ok: true, signals: 5_020 });
    expect(readFileSync(path).equals(before)).toBe(true);
  });

  test("has the schema and the marks of the original, and no log that it would need", () => {
    const { path } = seed({ signals: 10 });
    const file = join(temporaryFolder(), "copy.db");
    copyDatabase(path, file);
    const marks = [
      "SELECT type, name, sql FROM sqlite_schema ORDER BY name",
      "PRAGMA application_id",
      "PRAGMA user_version",
    ];
    for (const sql of marks) expect(valuesOf(file, sql)).toEqual(valuesOf(path, sql));
    expect(valuesOf(file, "PRAGMA journal_mode")).toEqual([["delete"]]);
  });

  test("of an empty database, and of one with holes in its numbers", () => {
    const empty = seed({ signals: 0 });
    const file = join(temporaryFolder(), "copy.db");
    expect(copyDatabase(empty.path, file)).toMatchObject({ ok: true, signals: 0, newest_id: null });
    const holed = seed({ signals: 6_000 });
    const db = new Database(holed.path);
    db.run("UPDATE signals SET seq = seq + 1000000000000 WHERE seq > 3000");
    db.close();
    expect(copyDatabase(holed.path, file)).toMatchObject({ ok: true, signals: 6_000 });
    expect(contentOf(file)).toEqual(contentOf(holed.path));
  });

  test("with --json tells programs what is in it", async () => {
    const { dataDir } = seed({ signals: 12 });
    const file = join(temporaryFolder(), "signalbox.db");
    const { code, stdout } = await backUp(file, dataDir, "--json");
    expect(code).toBe(0);
    expect(JSON.parse(stdout)).toEqual({
      file,
      bytes: statSync(file).size,
      signals: 12,
      newest_id: seededUlid(12),
      duration_ms: expect.any(Number),
    });
  });

  test("is made whatever characters are in the names of the folders", async () => {
    const odd = join(temporaryFolder(), "a b?mode=memory#c%20d&é ü😀");
    const { dataDir, path } = seed({ signals: 30, logged: 2, dataDir: join(odd, "data") });
    const folder = join(odd, "back up?vfs=none#%41");
    mkdirSync(folder);
    const file = join(folder, "a ?#%é.db");
    expect(await backUp(file, dataDir)).toMatchObject({ code: 0 });
    expect(contentOf(file)).toEqual(contentOf(path));
    expect(readdirSync(folder)).toEqual(["a ?#%é.db"]);
  });
});

describe("a backup of a running server is of one moment", () => {
  test("what was acknowledged before it began is in it, and with each signal all before it", async () => {
    const { url, dataDir } = await startServe(["--rate-limit", "0"]);
    const { key } = await mintKey(dataDir);
    const load = startLoad({ url, key, connections: 16 });
    const folder = temporaryFolder();
    const backups: { file: string; acknowledged: string[] }[] = [];
    for (const name of ["1.db", "2.db", "3.db"]) {
      await load.more(100, 201);
      const acknowledged = load.results.flatMap(({ id }) => id ?? []);
      const file = join(folder, name);
      expect(await backUp(file, dataDir)).toMatchObject({ code: 0 });
      backups.push({ file, acknowledged });
    }
    const results = await load.end();
    expect(results.filter(({ outcome }) => outcome !== 201)).toEqual([]);
    const all = idsOf(join(dataDir, "signalbox.db"));
    for (const { file, acknowledged } of backups) {
      const ids = idsOf(file);
      expect(ids).toEqual(all.slice(0, ids.length));
      const kept = new Set(ids);
      expect(acknowledged.filter((id) => !kept.has(id))).toEqual([]);
    }
    expect(readdirSync(folder).toSorted()).toEqual(["1.db", "2.db", "3.db"]);
  });

  test("keys, desks and signals that come while it is made are not in it", async () => {
    const { dataDir, keyId, key, path } = seed({ signals: MANY });
    const { url } = await startServe([], { dataDir });
    expect(await post(url, key, "before")).toBe(201);
    const file = join(temporaryFolder(), "signalbox.db");
    const backup = startBackup(file, dataDir);
    // By then the first rows are there, so the moment has passed.
    const copying = await stopCopy(join(file, ".."), 4 * 1024 * 1024);
    const other = withRegistryOf(dataDir, (registry) => {
      registry.revokeKey(keyId);
      registry.createDesk("beta", { ifMissing: false });
      return registry.mintKey({ desk: "beta", label: null, expiresInMs: null });
    });
    expect(await post(url, key, "revoked")).toBe(401);
    for (let count = 0; count < 50; count += 1) {
      expect(await post(url, other.key, `after-${count}`)).toBe(201);
    }
    process.kill(copying.pid, "SIGCONT");
    expect(await backup.ended).toMatchObject({ code: 0, stdout: "" });
    const counts = "SELECT count(*), max(seq) FROM signals";
    expect(valuesOf(path, counts)).toEqual([[MANY + 51, MANY + 51]]);
    expect(valuesOf(file, counts)).toEqual([[MANY + 1, MANY + 1]]);
    expect(valuesOf(file, "SELECT name FROM desks")).toEqual([["alpha"]]);
    expect(valuesOf(file, "SELECT id, revoked_at FROM api_keys")).toEqual([[keyId, null]]);
    expect(verifyDatabase(file).ok).toBe(true);
  });
});

function idsOf(path: string): unknown[] {
  return valuesOf(path, "SELECT id FROM signals ORDER BY seq").map(([id]) => id);
}

function valuesOf(path: string, sql: string): unknown[][] {
  const db = new Database(path, { readonly: true });
  try {
    return db.query(sql).values();
  } finally {
    db.close();
  }
}

describe("FILE", () => {
  test("may be an older backup, or an empty file: it is replaced, and closed to others", async () => {
    const { dataDir } = seed({ signals: 5 });
    const folder = temporaryFolder();
    const file = join(folder, "signalbox.db");
    writeFileSync(file, "");
    expect(await backUp(file, dataDir)).toMatchObject({ code: 0 });
    withRegistryOf(dataDir, (registry) => registry.createDesk("beta", { ifMissing: false }));
    chmodSync(file, 0o644);
    expect(await backUp(file, dataDir)).toMatchObject({ code: 0 });
    expect(contentOf(file).desks.rows).toBe(2);
    expect(mode(file)).toBe("600");
    expect(readdirSync(folder)).toEqual(["signalbox.db"]);
  });

  const foreign: [string, (file: string) => void][] = [
    ["a text", (file) => writeFileSync(file, "dear diary")],
    [
      "another program's database",
      (file) => {
        const db = new Database(file, { create: true });
        db.run("CREATE TABLE notes (text)");
        db.close();
      },
    ],
    ["the database of another server", (file) => cpSync(seed({ signals: 3 }).path, file)],
    ["a named pipe", (file) => void Bun.spawnSync(["mkfifo", file])],
  ];
  test.each(foreign)("is left as it is where it is %s", async (_name, make) => {
    const { dataDir } = seed({ signals: 3 });
    const file = join(temporaryFolder(), "mine");
    make(file);
    const before = statSync(file);
    await expectRefusal(file, dataDir, "is not a backup, and was left as it is: name another file");
    const after = statSync(file);
    expect([after.ino, after.size, after.mtimeMs]).toEqual([
      before.ino,
      before.size,
      before.mtimeMs,
    ]);
  });

  test("cannot be in the data folder, by whatever name", async () => {
    const { dataDir } = seed({ signals: 3 });
    await expectRefusal(join(dataDir, "b.db"), dataDir, `${dataDir} is the data folder`);
    await expectRefusal(join(dataDir, "signalbox.db"), dataDir, "is the data folder");
    const link = join(temporaryFolder(), "link");
    symlinkSync(dataDir, link);
    await expectRefusal(join(link, "b.db"), dataDir, "is the data folder");
    const { code, stderr } = await cli(["backup", "--every", "1h", link, "--data", dataDir]);
    expect(stderr).toBe(
      `signalbox: ${dataDir} is the data folder: put backups into another one.\n`,
    );
    expect(code).toBe(1);
  });

  test("cannot be a folder, nor be in one that is not there or cannot be written to", async () => {
    const { dataDir } = seed({ signals: 3 });
    const folder = join(temporaryFolder(), "folder");
    mkdirSync(folder);
    await expectRefusal(folder, dataDir, `such as ${join(folder, "signalbox.db")}`);
    const missing = join(folder, "none");
    await expectRefusal(join(missing, "b.db"), dataDir, `create it with: mkdir -p ${missing}`);
    // Nobody may create a file there, not even root.
    await expectRefusal(
      "/proc/sys/b.db",
      dataDir,
      /\/proc\/sys\/b\.db cannot be written \(E[A-Z]+\)/,
    );
  });

  test("is the old one or the whole new one at any time, also where the copy is killed", async () => {
    const { dataDir } = seed({ signals: MANY });
    const file = join(temporaryFolder(), "signalbox.db");
    copyDatabase(seed({ signals: 7 }).path, file);
    const old = readFileSync(file);
    for (const mib of [0, 2, 6]) {
      const backup = startBackup(file, dataDir);
      const { pid } = await stopCopy(join(file, ".."), mib * 1024 * 1024);
      process.kill(pid, "SIGKILL");
      const { code, stderr } = await backup.ended;
      expect({ code, stderr }).toEqual({
        code: 1,
        stderr: "signalbox: The copy was ended from outside (SIGKILL).\n",
      });
      expect(readFileSync(file).equals(old)).toBe(true);
    }
    const backup = startBackup(file, dataDir);
    const seen = new Set<number>();
    const ended = backup.ended.then(() => true);
    while (!(await Promise.race([ended, Bun.sleep(1)]))) seen.add(verifyDatabase(file).signals);
    seen.add(verifyDatabase(file).signals);
    expect([...seen]).toEqual([7, MANY]);
    expect(readdirSync(join(file, ".."))).toEqual(["signalbox.db"]);
  });
});

/** Changes bytes of a file in their place. */
function overwrite(path: string, offset: number, bytes: Uint8Array): void {
  const file = openSync(path, "r+");
  writeSync(file, bytes, 0, bytes.length, offset);
  closeSync(file);
}

/** The first page of a kind (https://sqlite.org/fileformat2.html#b_tree_pages) whose cells have a text in them. */
function findPage(path: string, kind: number, text: string): number {
  const bytes = readFileSync(path);
  for (let page = 4_096; page < bytes.length; page += 4_096) {
    const content = bytes.subarray(page, page + 4_096);
    if (content[0] === kind && content.includes(text)) return page;
  }
  throw new Error("no such page");
}

/** A page of at least two cells forgets its last one. */
function dropLastCell(path: string, page: number): void {
  const bytes = readFileSync(path).subarray(page + 3, page + 5);
  const cells = bytes.readUInt16BE();
  expect(cells).toBeGreaterThan(1);
  bytes.writeUInt16BE(cells - 1);
  overwrite(path, page + 3, bytes);
}

const TABLE_LEAF = 13;
const INDEX_LEAF = 10;

describe("a backup is refused", () => {
  test("where there is no database", async () => {
    const dataDir = newDataDir();
    await expectRefusal(join(temporaryFolder(), "b.db"), dataDir, `no database at ${dataDir}`);
    expect(existsSync(dataDir)).toBe(false);
  });

  test("where a page of the database is gone", async () => {
    const { dataDir, path } = seed({ signals: 2_000 });
    overwrite(path, findPage(path, TABLE_LEAF, '"number":1000,'), Buffer.alloc(4_096));
    await expectRefusal(join(temporaryFolder(), "b.db"), dataDir, /is damaged .* restore a backup/);
  });

  // SQLite reads over it, and the copy would be sound: without the rows.
  test.each([
    ["the newest", 1_990],
    ["one in the middle", 900],
    ["the first one", 1],
  ])("where a page has lost %s of its rows in silence", async (_name, seq) => {
    const { dataDir, path } = seed({ signals: 1_990 });
    dropLastCell(path, findPage(path, TABLE_LEAF, `"number":${seq},`));
    const count = "SELECT count(*) FROM signals NOT INDEXED";
    expect(valuesOf(path, count)).toEqual([[1_989]]);
    await expectRefusal(join(temporaryFolder(), "b.db"), dataDir, /damaged \(table signals/);
  });

  test("where the index of ids has lost the newest, so that nobody knows where to end", async () => {
    const { dataDir, path } = seed({ signals: 2_000 });
    dropLastCell(path, findPage(path, INDEX_LEAF, seededUlid(2_000)));
    await expectRefusal(join(temporaryFolder(), "b.db"), dataDir, /damaged \(table signals/);
  });

  test("where a signal is there twice", async () => {
    const { dataDir, path } = seed({ signals: 100 });
    storeTwice(path, [3, 4]);
    await expectRefusal(join(temporaryFolder(), "b.db"), dataDir, /damaged \(UNIQUE constraint/);
  });

  test("where the target's disk has no room, which it names, and nothing is left there", async () => {
    const { dataDir } = seed({ signals: 20_000 });
    const folder = temporaryFolder();
    const file = join(folder, "signalbox.db");
    // A file may have so many blocks of 1,024 bytes; a write beyond fails as on a full disk.
    const limited = ["bash", "-c", 'ulimit -f 2000 && exec "$@"', "limited", ...signalbox];
    const { code, stdout, stderr } = await startBackup(file, dataDir, { program: limited }).ended;
    expect(stderr).toMatch(
      /^signalbox: The disk of \S+signalbox\.db is full, or a quota is used up \(SQLITE_\w+\): free some space, then try again\.\n$/,
    );
    expect(stderr).toContain(file);
    expect({ code, stdout }).toEqual({ code: 1, stdout: "" });
    expect(readdirSync(folder)).toEqual([]);
  });
});

describe("a backup that gives way", () => {
  const program = signalbox;

  test("does so when the disk of the data folder, which is its own, has too little space", async () => {
    const { path } = seed({ signals: MANY });
    const folder = temporaryFolder();
    const error = await rejection(
      copyInProcess(path, join(folder, "b.db"), { program, freeBytesMin: Number.MAX_SAFE_INTEGER }),
    );
    expect(error).toBeInstanceOf(UserError);
    expect(String(error)).toMatch(
      /given up: \d+ MiB are free on the disk of .* copy to another disk/,
    );
    expect(readdirSync(folder)).toEqual([]);
    expect(verifyDatabase(path)).toMatchObject({ ok: true, signals: MANY });
  });

  test("does not when it is on another disk, as it was told to be", async () => {
    const { path } = seed({ signals: 10 });
    const folder = "/dev/shm";
    expect(statSync(folder).dev).not.toBe(statSync(path).dev);
    const file = join(folder, `signalbox-${process.pid}.db`);
    onCleanup(() => rmSync(file, { force: true }));
    const freeBytesMin = Number.MAX_SAFE_INTEGER;
    const copied = await copyInProcess(path, file, { program, freeBytesMin });
    expect(copied).toMatchObject({ ok: true, signals: 10, file });
  });

  test("is told how far it is, and can be ended at any moment", async () => {
    const { path } = seed({ signals: MANY });
    const folder = temporaryFolder();
    const stopping = new AbortController();
    const seen: Progress[] = [];
    const onProgress = (progress: Progress): void => {
      seen.push(progress);
      if (progress.copiedBytes > 0) stopping.abort();
    };
    const { signal: abort } = stopping;
    const options = { program, freeBytesMin: 0, signal: abort, onProgress };
    const error = await rejection(copyInProcess(path, join(folder, "b.db"), options));
    expect(String(error)).toContain("The copy was stopped.");
    expect(readdirSync(folder)).toEqual([]);
    expect(seen.length).toBeGreaterThan(0);
    for (const { copiedBytes, totalBytes } of seen) {
      expect(totalBytes).toBe(statSync(path).size);
      expect(copiedBytes).toBeWithin(0, totalBytes + 1);
    }
  });

  const ends: [string, NodeJS.Signals, boolean][] = [
    ["SIGTERM", "SIGTERM", false],
    ["SIGINT", "SIGINT", false],
    ["Ctrl-C, which the copy's process hears as well", "SIGINT", true],
    ["the stop of its whole service", "SIGTERM", true],
  ];
  test.each(ends)("leaves nothing behind at %s", async (_name, end, isOfGroup) => {
    const { dataDir } = seed({ signals: MANY });
    const file = join(temporaryFolder(), "signalbox.db");
    copyDatabase(seed({ signals: 7 }).path, file);
    const old = readFileSync(file);
    const backup = startBackup(file, dataDir, { detached: true });
    const copying = await stopCopy(join(file, ".."));
    process.kill(isOfGroup ? -backup.pid : backup.pid, end);
    process.kill(copying.pid, "SIGCONT");
    expect(await backup.ended).toEqual({
      code: 1,
      stdout: "",
      stderr: "signalbox: The copy was stopped.\n",
    });
    expect(readFileSync(file).equals(old)).toBe(true);
    expect(readdirSync(join(file, ".."))).toEqual(["signalbox.db"]);
  });
});

describe("what a killed copy has left", () => {
  test("is removed by the next one, and nothing else is", () => {
    const { path } = seed({ signals: 10 });
    const folder = temporaryFolder();
    const gone = Bun.spawnSync(["true"]).pid;
    const left = [partialPath(join(folder, "a.db"), gone), partialPath(join(folder, "b.db"), gone)];
    const running = partialPath(join(folder, "c.db"), process.ppid);
    const foreign = [`.film.${gone}.partial`, "signalbox-partial", `x.${gone}.signalbox-partial`];
    for (const name of [...left, running, ...foreign.map((other) => join(folder, other))]) {
      writeFileSync(name, "left");
    }
    copyDatabase(path, join(folder, "signalbox.db"));
    expect(readdirSync(folder).toSorted()).toEqual(
      [...foreign, running.slice(folder.length + 1), "signalbox.db"].toSorted(),
    );
  });

  test("of a command and its copy that were killed together, too", async () => {
    const { dataDir } = seed({ signals: MANY });
    const folder = temporaryFolder();
    const file = join(folder, "signalbox.db");
    const backup = startBackup(file, dataDir);
    const copying = await stopCopy(folder, 1024 * 1024);
    process.kill(backup.pid, "SIGKILL");
    process.kill(copying.pid, "SIGKILL");
    expect(await backup.ended).toMatchObject({ code: 137 });
    await untilGone(copying.pid);
    expect(readdirSync(folder)).toEqual([copying.path.slice(folder.length + 1)]);
    expect(await backUp(file, dataDir)).toMatchObject({ code: 0 });
    expect(readdirSync(folder)).toEqual(["signalbox.db"]);
  });
});

describe("a progress bar", () => {
  test("is drawn on a terminal, up to the end, and wiped off", async () => {
    const { dataDir } = seed({ signals: MANY });
    const file = join(temporaryFolder(), "signalbox.db");
    let shown = "";
    const decoder = new TextDecoder();
    const child = Bun.spawn([...signalbox, "backup", file, "--data", dataDir], {
      terminal: {
        cols: 100,
        rows: 30,
        data: (_terminal, bytes) => void (shown += decoder.decode(bytes, { stream: true })),
      },
    });
    onCleanup(() => child.kill("SIGKILL"));
    expect(await child.exited).toBe(0);
    child.terminal?.close();
    expect(shown).toMatch(/backup [█░]+ 0% of \d+ MiB copied/);
    // Wiped off: the last thing on the screen is the sentence.
    const [, left = ""] = shown.split("\u001b[2K");
    expect(left).toMatch(/^\/.*verified\..*\r\n$/);
  });

  test("is not drawn where stderr is a file or a pipe", async () => {
    const { dataDir } = seed({ signals: 10 });
    const { stderr } = await backUp(join(temporaryFolder(), "signalbox.db"), dataDir);
    expect(stderr).toMatch(/^\/[^\n]+\n$/);
    expect(stderr).not.toContain("\u001b");
  });
});

describe("usage", () => {
  test.each([
    ["--keep without --every", ["b.db", "--keep", "3"], "--keep goes with --every"],
    ["--json with --every", ["dir", "--every", "1h", "--json"], "--json is for one backup"],
    ["an interval of nothing", ["dir", "--every", "0s"], "one second or more"],
    ["an interval too short", ["dir", "--every", "999ms"], "one second or more"],
    ["none to keep", ["dir", "--every", "1h", "--keep", "0"], "1 or more"],
    ["no target", [], "signalbox backup --help"],
  ])("%s", async (_name, args, says) => {
    const { code, stdout, stderr } = await cli(["backup", ...args]);
    expect(stderr).toContain(says);
    expect({ code, stdout }).toEqual({ code: 2, stdout: "" });
  });
});

import { Database } from "bun:sqlite";
import { describe, expect, test } from "bun:test";
import {
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { partialPath } from "../../src/lib/files.ts";
import { lockFile } from "../../src/store/sqlite/files/lock.ts";
import { copyDatabase } from "../../src/store/sqlite/copies/copy.ts";
import type { CopyProgress } from "../../src/domain/storage/files.ts";
import { copyInProcess } from "../../src/store/sqlite/copies/copying.ts";
import { verifyDatabase } from "../../src/store/sqlite/copies/verify.ts";
import {
  cli,
  expectRefusal,
  expectUsageError,
  type CliOptions,
  type CliResult,
  signalbox,
  spawn,
  startServe,
} from "../kit/cli.ts";
import {
  changePage,
  contentOf,
  dropLastCell,
  edit,
  holdCopy,
  seed,
  seededUlid,
  withRegistryOf,
} from "../store/_databases.ts";
import { onTerminal } from "../kit/terminal.ts";
import { onCleanup, post, rejection, temporaryFolder } from "../kit/setup.ts";

/** Enough to stop a copy half-way. */
const MANY = 50_000;

const mode = (path: string): string => (statSync(path).mode & 0o777).toString(8);

function backUp(file: string, dataDir: string, ...more: string[]): Promise<CliResult> {
  return cli(["backup", file, "--data", dataDir, ...more]);
}

/** It fails, and the target's folder is unchanged. */
async function expectRefused(
  file: string,
  dataDir: string,
  says: string | RegExp,
  expectError = expectRefusal,
): Promise<void> {
  const folder = join(file, "..");
  const before = existsSync(folder) ? readdirSync(folder) : null;
  await expectError(["backup", file, "--data", dataDir], says);
  expect(existsSync(folder) ? readdirSync(folder) : null).toEqual(before);
}

interface Started {
  readonly pid: number;
  readonly ended: Promise<CliResult>;
}

function startBackup(file: string, dataDir: string, options: CliOptions = {}): Started {
  const child = spawn(["backup", file, "--data", dataDir], options);
  const ended = Promise.all([
    child.exited,
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
  ]).then(([code, stdout, stderr]) => ({ code, stdout, stderr }));
  return { pid: child.pid, ended };
}

/** A backup that is already at its place, of the database with MANY signals, and its bytes. */
async function oldBackup(): Promise<{ file: string; folder: string; old: Buffer }> {
  const folder = temporaryFolder();
  const file = join(folder, "signalbox.db");
  const { path } = await seed({ signals: 7 });
  const [desk = []] = valuesOf((await seed({ signals: MANY })).path, "SELECT uid FROM desks");
  edit(path, ["UPDATE desks SET uid = ?", String(desk[0])]);
  copyDatabase(path, file);
  return { file, folder, old: readFileSync(file) };
}

function idsOf(path: string): unknown[] {
  return valuesOf(path, "SELECT id FROM signals ORDER BY seq").flat();
}

function valuesOf(path: string, sql: string): unknown[][] {
  const db = new Database(path, { readonly: true });
  try {
    return db.query(sql).values();
  } finally {
    db.close();
  }
}

describe("a backup", () => {
  test("has everything, is private, needs no log, and leaves the original unchanged", async () => {
    const { dataDir, path } = await seed({ signals: 5_000, logged: 20 });
    const folder = temporaryFolder();
    const file = join(folder, "signalbox.db");
    const before = readFileSync(path);
    const { code, stdout, stderr } = await backUp(file, dataDir);
    expect({ code, stdout }).toEqual({ code: 0, stdout: "" });
    expect(stderr).toBe(
      `${file}: 5,020 signals, the newest ${seededUlid(5_020)}, verified. To restore it, stop the server, then type: signalbox restore ${file} --force --data ${dataDir}\n`,
    );
    expect(readdirSync(folder)).toEqual(["signalbox.db"]);
    expect(mode(file)).toBe("600");
    expect(contentOf(file)).toEqual(contentOf(path));
    expect(verifyDatabase(file)).toMatchObject({ ok: true, signals: 5_020, version: 1 });
    expect(valuesOf(file, "PRAGMA journal_mode")).toEqual([["delete"]]);
    expect(readFileSync(path).equals(before)).toBe(true);
  });

  test("says which backup it replaces", async () => {
    const { dataDir } = await seed({ signals: 1 });
    const file = join(temporaryFolder(), "signalbox.db");
    expect((await backUp(file, dataDir)).stderr).not.toContain("replaced");
    const { mtime } = statSync(file);
    const at = mtime.toISOString().slice(0, 19).replace("T", " ");
    const { stderr } = await backUp(file, dataDir);
    expect(stderr).toStartWith(`${file} replaced the backup of ${at}Z.\n${file}: 1 signal, `);
  });

  test("does not replace a backup of another database", async () => {
    const { file, old } = await oldBackup();
    const { dataDir } = await seed({ signals: 0 });
    await expectRefused(file, dataDir, /is a backup of another database than/);
    expect(readFileSync(file).equals(old)).toBe(true);
  });

  test("can be of an empty database, and reports its content with --json", async () => {
    const { dataDir } = await seed({ signals: 0 });
    const file = join(temporaryFolder(), "signalbox.db");
    const { code, stdout } = await backUp(file, dataDir, "--json");
    expect(code).toBe(0);
    expect(JSON.parse(stdout)).toEqual({
      file,
      bytes: statSync(file).size,
      signals: 0,
      newest_id: null,
      duration_ms: expect.any(Number),
    });
  });

  test("works with any characters in the names of folders", async () => {
    const odd = join(temporaryFolder(), "a b?mode=memory#c%20d&é ü😀");
    const { dataDir, path } = await seed({ signals: 30, logged: 2, dataDir: join(odd, "data") });
    const folder = join(odd, "back up?vfs=none#%41");
    mkdirSync(folder);
    const file = join(folder, "a ?#%é.db");
    expect(await backUp(file, dataDir)).toMatchObject({ code: 0 });
    expect(contentOf(file)).toEqual(contentOf(path));
    expect(readdirSync(folder)).toEqual(["a ?#%é.db"]);
  });
});

test("a backup of a running server has no key, desk or signal that came after it began", async () => {
  const { dataDir, keyId, key, path } = await seed({ signals: MANY });
  const { url } = await startServe([], { dataDir });
  expect((await post(url, key, { client_signal_id: "before" })).status).toBe(201);
  const file = join(temporaryFolder(), "signalbox.db");
  const backup = startBackup(file, dataDir);
  const copying = await holdCopy(join(file, ".."), 1024 * 1024);
  const other = await withRegistryOf(dataDir, async (registry) => {
    await registry.revokeKey(keyId);
    await registry.createDesk("beta", { ifMissing: false });
    return registry.mintKey({ scope: "send", desk: "beta", label: null, expiresInMs: null });
  });
  expect((await post(url, key, { client_signal_id: "revoked" })).status).toBe(401);
  for (let count = 0; count < 50; count += 1) {
    expect((await post(url, other.key, { client_signal_id: `after-${count}` })).status).toBe(201);
  }
  process.kill(copying.pid, "SIGCONT");
  expect(await backup.ended).toMatchObject({ code: 0, stdout: "" });
  const counts = "SELECT count(*), max(seq) FROM signals";
  expect(valuesOf(path, counts)).toEqual([[MANY + 51, MANY + 51]]);
  expect(valuesOf(file, counts)).toEqual([[MANY + 1, MANY + 1]]);
  expect(valuesOf(file, "SELECT name FROM desks")).toEqual([["alpha"]]);
  expect(valuesOf(file, "SELECT id, revoked_at FROM api_keys")).toEqual([[keyId, null]]);
});

describe("the target", () => {
  test("may be an older backup or an empty file: it is replaced and made private", async () => {
    const { dataDir } = await seed({ signals: 5 });
    const folder = temporaryFolder();
    const file = join(folder, "signalbox.db");
    writeFileSync(file, "");
    expect(await backUp(file, dataDir)).toMatchObject({ code: 0 });
    await withRegistryOf(dataDir, (registry) => registry.createDesk("beta", { ifMissing: false }));
    chmodSync(file, 0o644);
    expect(await backUp(file, dataDir)).toMatchObject({ code: 0 });
    expect(contentOf(file).desks.rows).toBe(2);
    expect(mode(file)).toBe("600");
    expect(readdirSync(folder)).toEqual(["signalbox.db"]);
  });

  const foreign: [string, (file: string) => unknown][] = [
    ["a text", (file) => writeFileSync(file, "dear diary")],
    ["another program's database", (file) => edit(file, "CREATE TABLE notes (text)")],
    [
      "the database of another server",
      async (file) => cpSync((await seed({ signals: 3 })).path, file),
    ],
    ["a named pipe", (file) => void Bun.spawnSync(["mkfifo", file])],
  ];
  test.each(foreign)("is refused and left unchanged if it is %s", async (_name, make) => {
    const { dataDir } = await seed({ signals: 3 });
    const file = join(temporaryFolder(), "mine");
    await make(file);
    const before = statSync(file);
    await expectRefused(file, dataDir, "is not a backup, and was left as it is: name another file");
    const { ino, size, mtimeMs } = statSync(file);
    expect({ ino, size, mtimeMs }).toMatchObject({
      ino: before.ino,
      size: before.size,
      mtimeMs: before.mtimeMs,
    });
  });

  test("cannot be in the data folder, under any name", async () => {
    const { dataDir } = await seed({ signals: 3 });
    const expectWrong = (file: string, says: string) =>
      expectRefused(file, dataDir, says, expectUsageError);
    await expectWrong(join(dataDir, "signalbox.db"), `${dataDir} is the data folder`);
    const link = join(temporaryFolder(), "link");
    symlinkSync(dataDir, link);
    await expectWrong(join(link, "b.db"), "is the data folder");
    const below = join(dataDir, "below");
    mkdirSync(below);
    await expectWrong(join(below, "b.db"), "put backups outside of it");
    expect(await cli(["backup", "--every", "1h", link, "--data", dataDir])).toEqual({
      code: 2,
      stdout: "",
      stderr: `signalbox: ${dataDir} is the data folder: put backups into another one.\n`,
    });
  });

  test("cannot be a folder, or in one that is missing or not writable", async () => {
    const { dataDir } = await seed({ signals: 3 });
    const folder = join(temporaryFolder(), "folder");
    mkdirSync(folder);
    await expectRefused(folder, dataDir, `such as ${join(folder, "signalbox.db")}`);
    const missing = join(folder, "none");
    await expectRefused(join(missing, "b.db"), dataDir, `create it with: mkdir -p ${missing}`);
    // Nobody may create a file there, not even root.
    await expectRefused("/proc/sys/b.db", dataDir, /b\.db cannot be written \(E[A-Z]+\)/);
  });
});

describe("a backup is refused if", () => {
  // SQLite itself notices only the first: it reads past the other in silence.
  const damages: [string, (path: string) => void, RegExp][] = [
    [
      "a page of the database is gone",
      (path) => changePage(path, 13, '"number":1000,', (page) => void page.fill(0)),
      /is damaged .* restore a backup/,
    ],
    [
      "a row is gone from its page",
      (path) => changePage(path, 13, '"number":900,', dropLastCell),
      /is not sound \(integrity: .*: check the original with: signalbox verify/,
    ],
  ];
  test.each(damages)("%s", async (_name, damage, says) => {
    const { dataDir, path } = await seed({ signals: 1_990 });
    damage(path);
    await expectRefused(join(temporaryFolder(), "b.db"), dataDir, says);
  });
});

describe("a backup stops", () => {
  const program = signalbox;
  const freeBytesMin = Number.MAX_SAFE_INTEGER;

  test("if it is on the data folder's disk and too little space is left there", async () => {
    const { path } = await seed({ signals: MANY });
    const folder = temporaryFolder();
    const error = await rejection(
      copyInProcess(path, join(folder, "b.db"), { program, freeBytesMin }),
    );
    expect(String(error)).toMatch(/the disk of .* has \d+ MiB left.* copy to another disk/);
    expect(readdirSync(folder)).toEqual([]);
  });

  test("but not if it is on another disk", async () => {
    const { path } = await seed({ signals: 10 });
    const folder = "/dev/shm";
    expect(statSync(folder).dev).not.toBe(statSync(path).dev);
    const file = join(folder, `signalbox-${process.pid}.db`);
    onCleanup(() => rmSync(file, { force: true }));
    const copied = await copyInProcess(path, file, { program, freeBytesMin });
    expect(copied).toMatchObject({ ok: true, signals: 10, file });
  });

  test("when its caller aborts it, who is told of its progress", async () => {
    const { path } = await seed({ signals: MANY });
    const folder = temporaryFolder();
    const stopping = new AbortController();
    const seen: CopyProgress[] = [];
    const onProgress = (progress: CopyProgress): void => {
      seen.push(progress);
      if (progress.copiedBytes > 0) stopping.abort();
    };
    const options = { program, freeBytesMin: 0, signal: stopping.signal, onProgress };
    const copying = rejection(copyInProcess(path, join(folder, "b.db"), options));
    await holdCopy(folder);
    const error = await copying;
    expect(String(error)).toContain("The copy was stopped.");
    expect(readdirSync(folder)).toEqual([]);
    expect(seen.length).toBeGreaterThan(0);
    for (const { copiedBytes, totalBytes } of seen) {
      expect(totalBytes).toBe(statSync(path).size);
      expect(copiedBytes).toBeWithin(0, totalBytes + 1);
    }
  });

  const ends: [string, NodeJS.Signals, "command" | "both" | "copy", string][] = [
    ["SIGTERM", "SIGTERM", "command", "The copy was stopped."],
    ["the end of its terminal", "SIGHUP", "both", "The copy was stopped."],
    ["Ctrl-C, which its own process receives as well", "SIGINT", "both", "The copy was stopped."],
    ["kill -9 of its own process", "SIGKILL", "copy", "The copy was killed (SIGKILL)."],
  ];
  test.each(ends)("at %s, and leaves only the old backup", async (_name, end, to, says) => {
    const { dataDir } = await seed({ signals: MANY });
    const { file, folder, old } = await oldBackup();
    const backup = startBackup(file, dataDir, { detached: true });
    const copying = await holdCopy(folder);
    process.kill({ command: backup.pid, both: -backup.pid, copy: copying.pid }[to], end);
    const stderr = `signalbox: ${says}\n`;
    expect(await backup.ended).toEqual({ code: 1, stdout: "", stderr });
    expect(readFileSync(file).equals(old)).toBe(true);
    expect(readdirSync(folder)).toEqual(["signalbox.db"]);
  });
});

test("the target is the old backup or the whole new one at any time", async () => {
  const { dataDir } = await seed({ signals: MANY });
  const { file } = await oldBackup();
  const ended = startBackup(file, dataDir).ended.then(() => true);
  const seen = new Set<number>();
  const look = () => seen.add(idsOf(file).length);
  while (!(await Promise.race([ended, Bun.sleep(20)]))) look();
  look();
  expect([...seen]).toEqual([7, MANY]);
});

test("a copy in progress is in a folder that only its user can enter", async () => {
  const { dataDir } = await seed({ signals: MANY });
  const folder = temporaryFolder();
  chmodSync(folder, 0o777);
  const backup = startBackup(join(folder, "b.db"), dataDir);
  const { path, pid } = await holdCopy(folder);
  const [name = "", ...others] = readdirSync(folder);
  expect(others).toEqual([]);
  expect(name).toMatch(/^\.b\.db\.[0-9a-f]{16}\.signalbox-partial$/);
  expect(mode(join(folder, name))).toBe("700");
  expect([path.startsWith(join(folder, name, "/")), mode(path)]).toEqual([true, "600"]);
  process.kill(pid, "SIGCONT");
  expect(await backup.ended).toMatchObject({ code: 0 });
  expect(readdirSync(folder)).toEqual(["b.db"]);
});

describe("what a killed copy has left", () => {
  test("is removed by the next one, and nothing else is: no copy in progress of another container", async () => {
    const { path } = await seed({ signals: 10 });
    const folder = temporaryFolder();
    const leave = (file: string): string => {
      const left = partialPath(join(folder, file));
      mkdirSync(left);
      for (const name of ["lock", "copy.db", "copy.db-journal"]) {
        writeFileSync(join(left, name), "");
      }
      return left;
    };
    leave("a.db");
    const running = leave("c.db");
    // Its process may have a number that is nobody's here.
    using _lock = lockFile(join(running, "lock"));
    const strange = leave("strange.db");
    writeFileSync(join(strange, "film"), "");
    const foreign = [".film.partial", "signalbox-partial", partialPath("x").slice(2)];
    for (const name of foreign) writeFileSync(join(folder, name), "left");
    copyDatabase(path, join(folder, "signalbox.db"));
    const kept = [running, strange].map((name) => name.slice(folder.length + 1));
    expect(readdirSync(folder).toSorted()).toEqual(
      [...foreign, ...kept, "signalbox.db"].toSorted(),
    );
    expect(readdirSync(running)).toContain("copy.db");
    expect(readdirSync(strange)).toEqual(["film"]);
  });
});

test("a progress bar is drawn on a terminal, and wiped off at the end", async () => {
  const { dataDir } = await seed({ signals: 10_000 });
  const file = join(temporaryFolder(), "signalbox.db");
  const shown = await onTerminal(["backup", file, "--data", dataDir], { cols: 100 });
  expect(shown).toMatch(/backup [█░]+ 0% of \d+ MiB copied/);
  // The last thing on the screen is the sentence.
  const [, left = ""] = shown.split("\u001b[2K");
  expect(left).toMatch(/^\/.*verified\..*\n$/);
});

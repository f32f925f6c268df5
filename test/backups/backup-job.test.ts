/** Backups at an interval: `backup --every`, and `serve --backup-dir`. */
import { describe, expect, test } from "bun:test";
import { existsSync, mkdirSync, readdirSync, rmSync, statSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { checkJob } from "../../src/checks/backups.ts";
import { HOUR_MS } from "../../src/lib/text/time.ts";
import { timeStamp } from "../../src/backups/folder.ts";
import { verifyDatabase } from "../../src/store/sqlite/copies/verify.ts";
import { cli, expectUsageError, freePort, spawn, startServe } from "../kit/cli.ts";
import { holdCopy, newDataDir, seed, withRegistryOf } from "../store/_databases.ts";
import { temporaryFolder, until } from "../kit/setup.ts";
import { makeWord, startJob } from "./_job.ts";

/** Enough to stop a copy half-way. */
const MANY = 50_000;

const STUCK =
  "a backup is not done after a whole interval: the disk of the backups does not answer, or is too slow";

const nameOf = (time: number): string => `signalbox-${timeStamp(time)}.db`;

describe("the job", () => {
  test("makes a backup at once, then at every interval, and logs each", async () => {
    const dir = join(temporaryFolder(), "a", "b");
    const { job, made, lines } = startJob({ dir, everyMs: 5 });
    await until(() => lines("backup made").length >= 3);
    await job.stop();
    expect(statSync(dir).mode & 0o777).toBe(0o700);
    expect(made.every((file) => /\/signalbox-\d{8}T\d{6}Z\.db$/.test(file))).toBe(true);
    expect(lines("backup made")[0]).toMatchObject({ signals: 7, duration_ms: expect.any(Number) });
  });

  test("keeps the latest, and removes no other file", async () => {
    const dir = temporaryFolder();
    const others = [
      "before-upgrade.db",
      "signalbox.db",
      "signalbox-20200101T000000Z.db.kept",
      "x-signalbox-20200101T000000Z.db",
      "signalbox-2020.db",
    ];
    const old = [1, 2, 3, 4, 5].map((hours) => nameOf(Date.now() - hours * HOUR_MS));
    for (const name of [...others, ...old]) writeFileSync(join(dir, name), "kept");
    const { job, made } = startJob({ dir });
    // The oldest one that has to go.
    await until(() => !readdirSync(dir).includes(old[2] ?? ""));
    await job.stop();
    expect(made).toHaveLength(1);
    expect(readdirSync(dir).toSorted()).toEqual(
      [...others, ...old.slice(0, 2), (made[0] ?? "").slice(dir.length + 1)].toSorted(),
    );
  });

  test("neither counts nor deletes backups dated in the future, and says so", async () => {
    const dir = temporaryFolder();
    const future = [nameOf(Date.now() + 900 * HOUR_MS), "signalbox-99999999T999999Z.db"];
    for (const name of future) writeFileSync(join(dir, name), "kept");
    const { job, made, lines } = startJob({ dir, keep: 1, everyMs: 1_000 });
    await until(() => made.length > 1 && !readdirSync(dir).includes(basename(made[0] ?? "")));
    await job.stop();
    expect(readdirSync(dir)).toEqual(expect.arrayContaining(future));
    expect(lines("backups dated in the future are neither counted nor deleted")).toEqual([
      expect.objectContaining({ files: future.map((name) => join(dir, name)) }),
    ]);
  });

  test("waits if there is a recent backup, and not if it is old", async () => {
    const young = temporaryFolder();
    writeFileSync(join(young, nameOf(Date.now() - HOUR_MS / 2)), "");
    const waiting = startJob({ dir: young });
    const old = temporaryFolder();
    writeFileSync(join(old, nameOf(Date.now() - 2 * HOUR_MS)), "");
    const beginning = startJob({ dir: old });
    await until(() => beginning.made.length > 0);
    await Promise.all([waiting.job.stop(), beginning.job.stop()]);
    expect(waiting.made).toEqual([]);
    expect(readdirSync(young)).toHaveLength(1);
  });

  test("logs a failure, retries, and removes no backup because of it", async () => {
    const dir = temporaryFolder();
    const old = [3, 2, 1].map((hours) => nameOf(Date.now() - hours * HOUR_MS));
    for (const name of old) writeFileSync(join(dir, name), "kept");
    let count = 0;
    let left: string[] = [];
    const { job, log, lines } = startJob({ dir, everyMs: 5, keep: 1 }, (file) => {
      if (count === 2) left = readdirSync(dir);
      count += 1;
      return count < 3 ? Promise.reject(new Error(`failure ${count}`)) : makeWord(file);
    });
    await until(() => lines("backup made").length > 0);
    await job.stop();
    expect(left.toSorted()).toEqual(old);
    expect(log.slice(0, 3).map(({ msg, reason }) => [msg, reason])).toEqual([
      ["backup failed, it will be retried", "failure 1"],
      ["backup failed, it will be retried", "failure 2"],
      ["backup made", undefined],
    ]);
    expect(log[0]?.level).toBe(50 as unknown as string);
  });

  test("an old backup that cannot be deleted fails no backup, and keeps no other one", async () => {
    const dir = temporaryFolder();
    const [stuck, old] = [2, 1].map((hours) => nameOf(Date.now() - hours * HOUR_MS));
    // A folder, which is not deleted like a file.
    mkdirSync(join(dir, stuck ?? ""));
    writeFileSync(join(dir, old ?? ""), "kept");
    const { job, made, lines } = startJob({ dir, everyMs: HOUR_MS / 2, keep: 1 });
    await until(() => lines("an old backup cannot be deleted").length > 0);
    await until(() => !readdirSync(dir).includes(old ?? ""));
    expect(job.status.failure).toBeNull();
    await job.stop();
    expect(lines("backup failed, it will be retried")).toEqual([]);
    expect(made.map((file) => readdirSync(dir).includes(file.slice(dir.length + 1)))).toEqual([
      true,
    ]);
    expect(lines("an old backup cannot be deleted")[0]?.["file"]).toBe(join(dir, stuck ?? ""));
  });

  test("its status names the newest backup without reading the folder", async () => {
    const dir = temporaryFolder();
    const time = Math.floor(Date.now() / 1_000) * 1_000 - HOUR_MS / 2;
    const young = nameOf(time);
    writeFileSync(join(dir, young), "kept");
    const { job } = startJob({ dir });
    await until(() => job.status.newest?.file === join(dir, young));
    rmSync(dir, { recursive: true });
    expect(job.status.newest).toEqual({ file: join(dir, young), at: time });
    const { job: other, made } = startJob({ dir });
    await until(() => other.status.newest !== null);
    expect(other.status.newest?.file).toBe(made[0] ?? "");
  });

  test("a backup that hangs is one error in the log, and a problem in the status until it goes on", async () => {
    const hanging = Promise.withResolvers<object>();
    const dir = temporaryFolder();
    const { job, lines } = startJob({ dir, everyMs: 1_000 }, () => hanging.promise);
    const attention = () => checkJob(job.status, Date.now(), Date.now());
    expect(attention()).toBeNull();
    await until(() => lines(STUCK).length > 0);
    expect(lines(STUCK)[0]).toMatchObject({ level: 50, dir, since: expect.any(String) });
    expect(attention()).toMatchObject({
      sentence: expect.stringMatching(
        /^A backup has been running since .*: the disk of .* does not answer/,
      ),
      next: expect.stringContaining("mount"),
    });
    hanging.resolve({});
    await until(() => lines("backup made").length > 0);
    await job.stop();
    expect(lines(STUCK)).toHaveLength(1);
    expect(job.status.stuck_since).toBeNull();
  });

  test("aborts the backup under way when it is stopped, and logs no failure", async () => {
    const { job, log, made } = startJob(
      {},
      (_file, { signal }) =>
        new Promise((_, failed) =>
          signal.addEventListener("abort", () => failed(new Error("given up"))),
        ),
    );
    await until(() => made.length > 0);
    await job.stop();
    expect(log).toEqual([]);
  });
});

/** `signalbox backup --every …` as a process. */
function startEvery(dir: string, dataDir: string, more: readonly string[] = []) {
  const child = spawn(["backup", "--every", "1s", ...more, dir, "--data", dataDir], {});
  let stderr = "";
  const reading = (async () => {
    for await (const chunk of child.stderr.pipeThrough(new TextDecoderStream())) stderr += chunk;
  })();
  return {
    output: () => stderr,
    /** How often a line was logged. */
    count: (text: string) => stderr.split(text).length - 1,
    /** The exit code. */
    end: async (name: NodeJS.Signals) => {
      child.kill(name);
      await reading;
      return child.exited;
    },
  };
}

describe("signalbox backup --every", () => {
  test("makes sound backups, keeps as many as told, and stops cleanly", async () => {
    const { dataDir } = await seed({ signals: 300 });
    const dir = temporaryFolder();
    const job = startEvery(dir, dataDir, ["--keep", "2"]);
    await until(() => job.count('"backup made"') >= 3);
    expect(await job.end("SIGTERM")).toBe(0);
    const names = readdirSync(dir);
    expect(names).toHaveLength(2);
    for (const name of names) {
      expect(verifyDatabase(join(dir, name))).toMatchObject({ ok: true, signals: 300 });
    }
    expect(job.output()).toEndWith('"msg":"stopped"}\n');
  });

  test("deletes no backup of another database, and says that the folder has one", async () => {
    const dir = temporaryFolder();
    const good = join(dir, nameOf(Date.now() - 2 * HOUR_MS));
    const { dataDir } = await seed({ signals: 3 });
    expect(await cli(["backup", good, "--data", dataDir])).toMatchObject({ code: 0 });
    // Tells nothing of the one before it.
    const damaged = join(dir, nameOf(Date.now() - HOUR_MS));
    writeFileSync(damaged, "damaged");
    // What a server creates if the disk with the data is not mounted.
    const empty = newDataDir();
    await withRegistryOf(empty, () => {});
    const job = startEvery(dir, empty, ["--keep", "1"]);
    await until(() => job.count("backup failed, it will be retried") >= 2);
    expect(await job.end("SIGTERM")).toBe(0);
    expect(job.output()).toContain(`${good} is a backup of another database than`);
    expect(readdirSync(dir).toSorted()).toEqual([basename(good), basename(damaged)]);
  });

  test("stops at a signal during a copy", async () => {
    const { dataDir } = await seed({ signals: MANY });
    const dir = temporaryFolder();
    const job = startEvery(dir, dataDir);
    await holdCopy(dir);
    expect(await job.end("SIGINT")).toBe(0);
    expect(readdirSync(dir)).toEqual([]);
    expect(job.output()).not.toContain("failed");
  });

  test("starts without a database, and logs each time what is missing", async () => {
    const dataDir = newDataDir();
    const dir = temporaryFolder();
    const job = startEvery(dir, dataDir);
    await until(() => job.count("There is no database at") >= 2);
    await withRegistryOf(dataDir, (registry) => registry.createDesk("alpha", { ifMissing: false }));
    await until(() => job.count('"backup made"') >= 1);
    expect(await job.end("SIGTERM")).toBe(0);
    expect(verifyDatabase(join(dir, readdirSync(dir)[0] ?? "")).ok).toBe(true);
  });
});

describe("serve --backup-dir", () => {
  test("the port and the folder are free after the server is killed during a copy", async () => {
    const { dataDir } = await seed({ signals: MANY });
    const dir = temporaryFolder();
    const listen = `127.0.0.1:${await freePort()}`;
    const server = await startServe(["--backup-dir", dir], { dataDir, listen });
    const copying = await holdCopy(dir);
    server.kill("SIGKILL");
    expect(await server.exited).toBe("SIGKILL");
    const next = await startServe(["--backup-dir", dir], { dataDir, listen });
    process.kill(copying.pid, "SIGKILL");
    await next.logged("backup made");
    expect(readdirSync(dir).filter((name) => name.endsWith(".db"))).toHaveLength(1);
  });

  test("the data folder is refused", async () => {
    const none = newDataDir();
    for (const dir of [none, join(none, "below")]) {
      for (const command of ["serve --listen 127.0.0.1:0 --backup-dir", "backup --every 1h"]) {
        await expectUsageError([...command.split(" "), dir, "--data", none], "put backups");
      }
    }
    expect(existsSync(none)).toBe(false);
  });
});

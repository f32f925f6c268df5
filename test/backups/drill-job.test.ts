/** `--backup-drill` and the room for the next backup: when the job does what, and what it reports. */
import { describe, expect, test } from "bun:test";
import { lstatSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Room } from "../../src/backups/backups.ts";
import { DrillSkipped, type RunDrill } from "../../src/backups/drill.ts";
import { timeStamp } from "../../src/backups/folder.ts";
import type { BackupPlan } from "../../src/backups/status.ts";
import { checkDrill } from "../../src/checks/backups.ts";
import type { Context } from "../../src/checks/finding.ts";
import { StoppedError } from "../../src/lib/errors.ts";
import { DAY_MS, HOUR_MS } from "../../src/lib/text/time.ts";
import type { ServerStatus } from "../../src/ops/server.ts";
import { temporaryFolder, until } from "../kit/setup.ts";
import { makeWord, startJob } from "./_job.ts";

const WEEK_MS = 7 * DAY_MS;
const PASSED = "backup drill passed";
const FAILED = "backup drill failed, it will be retried";

function startDrills(run: RunDrill, plan: Partial<BackupPlan> = {}) {
  const drilled: string[] = [];
  const drill: RunDrill = (file, signal) => {
    drilled.push(file);
    return run(file, signal);
  };
  const started = startJob({ drillMs: WEEK_MS, ...plan }, makeWord, { drill });
  const attention = (now = Date.now()) =>
    checkDrill({
      server: { backups: started.job.status, started_at: now } as ServerStatus,
      now,
      toType: (command: string) => `signalbox ${command}`,
    } as Context);
  return { ...started, drilled, attention };
}

const passes = () => Promise.resolve({ signals: 7 });

describe("a drill", () => {
  test("follows the first backup, then the interval, which a restart does not begin again", async () => {
    const first = startDrills(passes);
    const { dir } = first;
    expect(await first.attention()).toMatchObject({ severity: "ok" });
    await until(() => first.lines(PASSED).length > 0);
    await until(() => first.job.status.drill?.last !== null);
    await first.job.stop();
    expect(first.lines(PASSED)[0]).toMatchObject({ file: first.made[0], signals: 7 });
    const { drill } = first.job.status;
    expect(drill).toMatchObject({
      last: { file: first.made[0], failure: null },
      every_ms: WEEK_MS,
    });
    expect(drill?.passed_at).toBe(drill?.last?.at ?? 0);
    expect(await first.attention()).toMatchObject({
      severity: "ok",
      sentence: expect.stringContaining(`${first.made[0]} was restored`),
    });

    const next = startDrills(passes, { dir, everyMs: 5 });
    await until(() => next.made.length >= 3);
    await next.job.stop();
    expect(next.drilled).toEqual([]);
    expect(next.job.status.drill).toEqual(drill);
  });

  test("is made again after its interval, without another backup", async () => {
    const { drilled, made, job } = startDrills(passes, { drillMs: 20 });
    await until(() => drilled.length >= 3);
    await job.stop();
    expect(made).toHaveLength(1);
  });

  test("runs while the next backup is made, one at a time", async () => {
    const hanging = Promise.withResolvers<object>();
    const { drilled, made, job } = startDrills(() => hanging.promise, { everyMs: 5, drillMs: 5 });
    await until(() => made.length >= 3);
    expect(drilled).toHaveLength(1);
    hanging.resolve({});
    await until(() => drilled.length >= 2);
    await job.stop();
  });

  test("that fails is a problem until it passes with the next backup, also after a restart", async () => {
    const failing = startDrills(() => Promise.reject(new Error("a page is gone")));
    await until(() => failing.job.status.drill?.last != null);
    await failing.job.stop();
    expect(failing.lines(FAILED)).toEqual([
      expect.objectContaining({ level: 50, file: failing.made[0], reason: "a page is gone" }),
    ]);
    const problem = {
      severity: "problem",
      sentence: expect.stringMatching(/^The drill of \S+ failed at .*: a page is gone$/),
      next: expect.stringContaining(`signalbox verify --drill ${failing.dir}`),
    };
    expect(await failing.attention()).toMatchObject(problem);

    // The same backup is not tried again at once.
    const { dir } = failing;
    const same = startDrills(passes, { dir });
    await until(() => same.job.status.newest !== null && same.job.status.drill?.last != null);
    expect(await same.attention()).toMatchObject(problem);
    await same.job.stop();
    expect(same.drilled).toEqual([]);

    await Bun.sleep(1_000);
    const next = startDrills(passes, { dir, everyMs: 1_000 });
    await until(() => next.job.status.drill?.last?.failure === null);
    expect(await next.attention()).toMatchObject({ severity: "ok" });
    await next.job.stop();
  });

  test("without room is a warning, and none when it was stopped", async () => {
    const skipped = startDrills(() => Promise.reject(new DrillSkipped("There is no room.")));
    await until(() => skipped.job.status.drill?.last != null);
    expect(skipped.lines("backup drill skipped, it will be retried")[0]).toMatchObject({
      level: 40,
      reason: "There is no room.",
    });
    expect(await skipped.attention()).toMatchObject({
      severity: "warning",
      sentence: expect.stringContaining("was skipped: There is no room."),
    });
    let count = 0;
    const stopped = startDrills(() => {
      count += 1;
      return count === 1 ? Promise.reject(new StoppedError("The copy was stopped.")) : passes();
    });
    await until(() => stopped.lines(PASSED).length > 0);
    expect(stopped.lines(FAILED)).toEqual([]);
    const aborted = startDrills(
      (_file, signal) =>
        new Promise((_, failed) =>
          signal.addEventListener("abort", () => failed(new Error("given up"))),
        ),
    );
    await until(() => aborted.drilled.length > 0);
    await aborted.job.stop();
    expect(aborted.lines(FAILED)).toEqual([]);
    expect(aborted.job.status.drill?.last).toBeNull();
  });

  test("that has not passed for two intervals is a warning", async () => {
    const dir = temporaryFolder();
    const at = Date.now() - 2 * WEEK_MS;
    const last = { at, file: "old.db", failure: null, is_skipped: false };
    writeFileSync(join(dir, "signalbox-drill.json"), JSON.stringify({ last, passed_at: at }));
    writeFileSync(join(dir, `signalbox-${timeStamp(Date.now() - HOUR_MS / 2)}.db`), "");
    const hanging = Promise.withResolvers<object>();
    const { attention, drilled } = startDrills(() => hanging.promise, { dir });
    await until(() => drilled.length > 0);
    expect(await attention()).toMatchObject({
      severity: "warning",
      sentence: `No drill of the last 14d restored a backup of ${dir}.`,
    });
    hanging.resolve({});
    await until(async () => (await attention())?.severity === "ok");
  });

  test.each(["", "{", "[]", '{"last":{"at":1},"passed_at":1}', "x".repeat(70_000)])(
    "is made if its record cannot be read: %#",
    async (text) => {
      const dir = temporaryFolder();
      writeFileSync(join(dir, "signalbox-drill.json"), text);
      const { job } = startDrills(passes, { dir });
      await until(() => job.status.drill?.last?.failure === null);
    },
  );

  test("follows no link that others put in the place of its record", async () => {
    const dir = temporaryFolder();
    const precious = join(temporaryFolder(), "precious");
    writeFileSync(precious, "mine");
    const record = join(dir, "signalbox-drill.json");
    symlinkSync(precious, record);
    const { lines, job } = startDrills(passes, { dir });
    await until(() => lines("the result of a backup drill cannot be written").length > 0);
    expect(job.status.drill?.last?.failure).toBeNull();
    expect(readFileSync(precious, "utf8")).toBe("mine");
    expect(lstatSync(record).isSymbolicLink()).toBe(true);
  });
});

test("a backup that may not fit is one warning before it is tried, and one line when it fits", async () => {
  const room = { free: 5, needed: 10 };
  const { dir, lines, made, job } = startJob({ everyMs: 5 }, makeWord, {
    roomIn: (): Promise<Room> => Promise.resolve(room),
  });
  await until(() => lines("backup made").length >= 3);
  const tight = "the next backup may not fit on its disk";
  expect(lines(tight)).toEqual([
    expect.objectContaining({ level: 40, dir, free_bytes: 5, needed_bytes: 10 }),
  ]);
  room.free = 10;
  await until(() => lines("the next backup fits on its disk again").length === 1);
  room.free = 9;
  await until(() => lines(tight).length === 2);
  await job.stop();
  expect(made.length).toBeGreaterThan(3);
});

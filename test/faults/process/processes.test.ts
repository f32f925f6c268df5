/** Several processes on one data folder: one server at a time, and no command fails because of a lock. */
import { expect, test } from "bun:test";
import { existsSync, mkdirSync, readFileSync, symlinkSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { cli, type ServeProcess, signalbox } from "../../kit/cli.ts";
import { query, temporaryFolder } from "../../kit/setup.ts";
import { expectKept, report, scale, stop, tryStart } from "../kit/faults.ts";
import { underLoad } from "../kit/service.ts";
import { LOCKED, startStorm, statusFor } from "./_storm.ts";
import { underStrace } from "../kit/strace.ts";
import { checkpointingAfter, variantOf } from "../kit/variant.ts";

const RACES = scale(50, 5);
const SERVERS = 4;
/** Delays each system call on the lock, so that servers that start together meet there. */
const LOCK_DELAY_US = 3_000;

const STORM_MS = scale(45_000, 3_000);
const PROCESSES = scale(8, 4);
const CONNECTIONS = 64;
const CHECKPOINT_PAGES = 64;
const RESTARTS = scale(5, 2);
const NEW_FOLDERS = scale(10, 2);

/** What the second server says. */
function refusal(dataDir: string): string {
  return `signalbox: Another signalbox server or restore is already using ${dataDir}: stop it first, or name another folder with --data DIR.\n`;
}

function expectNothingSaid(server: ServeProcess): void {
  expect(server.log().filter(({ level }) => level !== "info")).toEqual([]);
  expect(server.output.stderr).not.toMatch(LOCKED);
}

test("a second server on the folder is refused under any path, and the first is not disturbed", async () => {
  const { server: first, dataDir, load } = await underLoad({ load: { connections: 16 } });
  const elsewhere = temporaryFolder();
  symlinkSync(dataDir, join(elsewhere, "link"));
  symlinkSync(dirname(dataDir), join(elsewhere, "parent"));
  const cwd = join(dirname(dataDir), "beside");
  mkdirSync(cwd);
  const names = [
    { given: join(elsewhere, "link"), shown: join(elsewhere, "link") },
    { given: join(elsewhere, "parent", "data"), shown: join(elsewhere, "parent", "data") },
    { given: join("..", basename(dataDir)), shown: dataDir },
    { given: `${dataDir}/./`, shown: dataDir },
  ];
  for (const { given, shown } of names) {
    await load.more(50, 201);
    const args = ["serve", "--data", given, "--listen", "127.0.0.1:0"];
    const second = await cli(args, { cwd });
    expect(second).toEqual({ code: 1, stdout: "", stderr: refusal(shown) });
    expect((await cli(["healthcheck", "--data", given], { cwd })).code).toBe(0);
  }
  await load.more(50, 201);
  const results = await load.end();
  expect(new Set(results.map(({ outcome }) => outcome))).toEqual(new Set([201]));
  expectNothingSaid(first);
  const kept = expectKept(dataDir, results);
  report("a second server", names.length, `refused; ${kept} signals of the first kept`);
});

test("of several servers that start at once over a killed one's lock, one serves", async () => {
  const dataDir = join(temporaryFolder(), "data");
  const calls = "openat,fcntl,pread64,pwrite64,fsync,fdatasync";
  const delay = `inject=${calls}:delay_enter=${LOCK_DELAY_US}`;
  const lock = ["-P", join(dataDir, "serve.lock")];
  const late = underStrace([...lock, "-e", `trace=${calls}`, "-e", delay]);
  for (let round = 0; round < RACES; round += 1) {
    const program = round % 2 === 0 ? late : signalbox;
    const starters = await Promise.all(
      Array.from({ length: SERVERS }, () => tryStart(dataDir, program)),
    );
    // The next round meets the lock of a killed server.
    await Promise.all(starters.map(({ end }) => end()));
    expect(starters.filter(({ takesSignals }) => takesSignals)).toHaveLength(1);
    for (const { takesSignals, result } of starters) {
      if (!takesSignals) expect(result).toEqual({ code: 1, stderr: refusal(dataDir) });
    }
  }
  report("servers that start at once", RACES, "one serves");
});

/** How often the log restarted: the checkpoint sequence number in its header. */
function logsBegun(dataDir: string): number {
  return readFileSync(join(dataDir, "signalbox.db-wal")).readUInt32BE(12);
}

async function expectSound(dataDir: string): Promise<void> {
  expect(await cli(["verify", "--data", dataDir])).toMatchObject({ code: 0, stderr: "" });
}

test("no command meets a lock beside full load and many checkpoints", async () => {
  const program = variantOf(checkpointingAfter(CHECKPOINT_PAGES));
  const crowd = { connections: CONNECTIONS };
  const { server, dataDir, url, load } = await underLoad({ program, load: crowd });
  const storm = startStorm({ dataDir, processes: PROCESSES, url });
  await Bun.sleep(STORM_MS);
  await storm.end();
  const checkpoints = logsBegun(dataDir);
  const results = await load.end();

  expect(new Set(results.map(({ outcome }) => outcome))).toEqual(new Set([201]));
  expectNothingSaid(server);
  expect(checkpoints).toBeGreaterThan(scale(100, 10));
  await stop(server);
  const kept = expectKept(dataDir, results);
  await expectSound(dataDir);
  const commands = [...storm.counts.values()].reduce((total, count) => total + count, 0);
  const found = `${checkpoints} log restarts; ${kept} signals kept`;
  report("commands beside full load", commands, found);
});

test("no command meets a lock while the server restarts", async () => {
  const program = variantOf(checkpointingAfter(CHECKPOINT_PAGES));
  const service = await underLoad({ program, load: { connections: 16, retry: true } });
  const { dataDir, load, url } = service;
  const storm = startStorm({ dataDir, processes: PROCESSES, url: null });
  for (let round = 0; round < RESTARTS; round += 1) {
    const { server } = service;
    await load.more(200 + 100 * (round % 3), 201);
    await stop(server);
    expectNothingSaid(server);
    await service.restart();
  }
  await load.more(100, 201);
  await storm.end();
  const results = await load.end();
  const answered = results.filter(({ outcome }) => typeof outcome === "number");
  for (const { outcome } of answered) expect([200, 201]).toContain(outcome as number);
  for (const minted of storm.minted) {
    expect(await statusFor(url, minted)).toBe(storm.revoked.has(minted) ? 401 : 201);
  }
  await stop(service.server);
  const kept = expectKept(dataDir, results);
  await expectSound(dataDir);
  report("commands beside restarts", RESTARTS, `${storm.minted.length} keys; ${kept} signals kept`);
});

test("commands and servers that create the same folder at once all succeed, except one server", async () => {
  const desks = ["alpha", "beta", "gamma"];
  for (let round = 0; round < NEW_FOLDERS; round += 1) {
    const dataDir = join(temporaryFolder(), "data");
    const commands = [
      ...desks.map((desk) => ["desk", "create", desk]),
      ["desk", "create", "shared", "--if-missing"],
      ["desk", "create", "shared", "--if-missing"],
    ];
    const [results, ...starters] = await Promise.all([
      Promise.all(commands.map((command) => cli([...command, "--data", dataDir]))),
      tryStart(dataDir),
      tryStart(dataDir),
    ]);
    for (const { code, stderr } of results) {
      expect(stderr).not.toMatch(LOCKED);
      expect({ code, stderr }).toMatchObject({ code: 0 });
    }
    const loser = starters.find((starter) => !starter.takesSignals);
    expect(loser?.result).toEqual({ code: 1, stderr: refusal(dataDir) });
    const names = query<{ name: string }>(dataDir, "SELECT name FROM desks ORDER BY name");
    expect(names.map(({ name }) => name)).toEqual([...desks, "shared"]);
    await Promise.all(starters.map(({ end }) => end()));
    await expectSound(dataDir);
    expect(existsSync(join(dataDir, "serve.lock-journal"))).toBe(false);
  }
  report("a new folder for all at once", NEW_FOLDERS, "every command succeeds, one server serves");
});

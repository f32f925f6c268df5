/** `serve --backup-command` and `backup --every --command`: each backup is sent away. */
import { describe, expect, test } from "bun:test";
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { shellQuoted } from "../../src/lib/text/shell.ts";
import { checkJob, describeSending } from "../../src/checks/backups.ts";
import { readCommand } from "../../src/cli/options.ts";
import { DAY_MS, MINUTE_MS } from "../../src/lib/text/time.ts";
import type { BackupStatus } from "../../src/backups/status.ts";
import { timeStamp } from "../../src/backups/folder.ts";
import { runBackupCommand, Tail } from "../../src/backups/command.ts";
import { verifyDatabase } from "../../src/store/sqlite/copies/verify.ts";
import { cliHere, mintKey, spawn, startServe } from "../kit/cli.ts";
import { seed } from "../store/_databases.ts";
import { temporaryFolder, until } from "../kit/setup.ts";
import { makeWord, startJob } from "./_job.ts";

const FAILED = "the backup command failed, it will be retried";

type Made = NonNullable<BackupStatus["newest"]>;

/** The process ids that a command wrote to a file, one per line. */
async function pidsIn(file: string, count: number): Promise<number[]> {
  const read = () => (existsSync(file) ? readFileSync(file, "utf8").split("\n").slice(0, -1) : []);
  await until(() => read().length === count);
  return read().map(Number);
}

function isRunning(pid: number): boolean {
  try {
    // A zombie has ended.
    return !/^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, "utf8"));
  } catch {
    return false;
  }
}

describe("the command", () => {
  test("may take longer than a timer can be", async () => {
    const { signal } = new AbortController();
    const timeoutMs = 100 * DAY_MS;
    expect(await runBackupCommand("sleep 0.1", "file", { timeoutMs, signal })).toBeUndefined();
  });

  test.each([
    "cp {}",
    'cp "{}"',
    "cp '{}'",
    'cp "$SIGNALBOX_BACKUP_FILE"',
    `echo "isn't '\\"'" \\' && cp {}`,
    `sh -c 'cp "$SIGNALBOX_BACKUP_FILE" "$1"' sh`,
  ])("gets the path of each backup as one word: %s", async (start) => {
    const dir = join(temporaryFolder(), `a 'b" $(touch pwned) \`touch pwned\`; *`);
    const away = temporaryFolder();
    const command = readCommand(`${start} ${shellQuoted(away)} && pwd`);
    const { job, lines } = startJob({ dir, command });
    await until(() => lines("backup sent").length > 0);
    expect(readdirSync(away)).toEqual(readdirSync(dir));
    expect(existsSync("pwned")).toBe(false);
    const file = join(dir, readdirSync(dir)[0] ?? "");
    expect(lines("backup sent")[0]).toMatchObject({ file, duration_ms: expect.any(Number) });
    expect(job.status.sending).toEqual({ sent: job.status.newest, failure: null });
    expect(job.status.newest?.file).toBe(file);
  });

  test("runs after each backup, and never for one that failed", async () => {
    const away = temporaryFolder();
    let count = 0;
    const command = readCommand(`cp {} ${away}`);
    const { job, lines } = startJob({ everyMs: 1_000, command }, (file) => {
      count += 1;
      return count % 2 === 1 ? Promise.reject(new Error("no")) : makeWord(file);
    });
    await until(() => lines("backup sent").length >= 1);
    await job.stop();
    const [sent, made] = ["backup sent", "backup made"].map((msg) => lines(msg).length);
    expect([made, (made ?? 0) - 1]).toContain(sent);
    expect(lines(FAILED)).toEqual([]);
  });

  test("that fails is retried, is in the log and the status, and keeps no backup from being made", async () => {
    const flag = join(temporaryFolder(), "works");
    const command = `echo 'no route to host' >&2; test -e ${flag} || exit 3`;
    const { job, lines, dir } = startJob({ everyMs: 1_000, keep: 1, command });
    await until(() => lines(FAILED).length >= 2 && lines("backup made").length >= 2);
    expect(lines(FAILED)[0]).toMatchObject({
      level: 50,
      file: expect.stringContaining(dir),
      reason: "exit code 3: no route to host",
    });
    const { sending, failure } = job.status;
    expect(failure).toBeNull();
    expect(sending?.failure?.reason).toBe("exit code 3: no route to host");
    expect(sending?.sent).toBeNull();
    // Made and verified is good enough to remove older ones; the newest always stays.
    await until(() => readdirSync(dir).length === 1);
    expect(readdirSync(dir)).toEqual([basename(job.status.newest?.file ?? "")]);
    writeFileSync(flag, "");
    await until(() => lines("backup sent").length > 0);
    expect(job.status.sending?.failure).toBeNull();
  });

  test("is retried before the next backup is due", async () => {
    const flag = join(temporaryFolder(), "works");
    const command = `test -e ${flag} || { touch ${flag}; exit 1; }`;
    const { lines } = startJob({ everyMs: 2_000, command });
    await until(() => lines("backup sent").length > 0);
    expect([FAILED, "backup made"].map((msg) => lines(msg).length)).toEqual([1, 1]);
  });

  test("sends the newest backup after a start, because the last server may not have", async () => {
    const [dir, away] = [temporaryFolder(), temporaryFolder()];
    const [newest = "", old = ""] = [1, 2].map(
      (minutes) => `signalbox-${timeStamp(Date.now() - minutes * MINUTE_MS)}.db`,
    );
    for (const name of [old, newest]) writeFileSync(join(dir, name), "backup");
    const { job, lines } = startJob({ dir, command: readCommand(`cp {} ${away}`) });
    await until(() => lines("backup sent").length > 0);
    expect(readdirSync(away)).toEqual([newest]);
    expect(job.status.sending?.sent).toEqual(job.status.newest);
    const { job: next } = startJob({ dir, command: "exit 1" });
    await until(() => next.status.sending?.failure != null);
    expect(lines("backup made")).toEqual([]);
  });

  test("that writes without end is reported with its last lines only", async () => {
    const command =
      "head -c 3000000 /dev/zero | tr '\\0' x >&2; seq 100 >&2; printf '\\033[31mlast\\n' >&2; exit 9";
    const { lines } = startJob({ command });
    await until(() => lines(FAILED).length > 0);
    expect(lines(FAILED)[0]?.["reason"]).toBe("exit code 9: 97 / 98 / 99 / 100 / last");
    const { lines: long } = startJob({
      command: "head -c 3000000 /dev/zero | tr '\\0' x >&2; exit 9",
    });
    await until(() => long(FAILED).length > 0);
    expect(String(long(FAILED)[0]?.["reason"])).toHaveLength("exit code 9: ".length + 1_000);
  });

  test("is ended after half of the interval, with every process that it started", async () => {
    const pids = join(temporaryFolder(), "pids");
    const command = `sh -c 'echo $$ >> ${pids}; exec sleep 1000' | sh -c 'echo $$ >> ${pids}; exec sleep 1000'`;
    const { job, lines } = startJob({ everyMs: 2_000, command });
    const started = await pidsIn(pids, 2);
    await until(() => lines(FAILED).length > 0);
    expect(lines(FAILED)[0]?.["reason"]).toBe(
      "it took longer than 1s, half of the interval between backups, and was stopped",
    );
    expect(checkJob(job.status, 0, 0)).toMatchObject({
      sentence: expect.stringContaining("it took longer than 1s"),
      next: "make it faster, or raise --backup-every",
    });
    await until(() => !started.some(isRunning));
    await job.stop();
  });

  test("that ignores SIGTERM is killed when the job stops, without a failure", async () => {
    const [pids, told] = [join(temporaryFolder(), "pids"), join(temporaryFolder(), "told")];
    const { job, log } = startJob({
      command: `trap 'touch ${told}' TERM; echo $$ >> ${pids}; while :; do sleep 0.1; done`,
    });
    const started = await pidsIn(pids, 1);
    await job.stop();
    expect(started.some(isRunning)).toBe(false);
    expect(existsSync(told)).toBe(true);
    expect(log.map(({ msg }) => msg)).toEqual(["backup made"]);
  });

  test("leaves nothing behind in the background", async () => {
    const pids = join(temporaryFolder(), "pids");
    const { lines } = startJob({ command: `sleep 1000 & echo $! >> ${pids}` });
    const started = await pidsIn(pids, 1);
    await until(() => lines("backup sent").length > 0);
    await until(() => !started.some(isRunning));
  });

  test("has a lower priority than the server", async () => {
    const file = join(temporaryFolder(), "nice");
    const { lines } = startJob({ command: `sleep 0.2; nice > ${file}` });
    await until(() => lines("backup sent").length > 0);
    const own = Number(new TextDecoder().decode(Bun.spawnSync(["nice"]).stdout));
    expect(Number(readFileSync(file, "utf8"))).toBe(Math.max(own, 10));
  });
});

describe("serve --backup-command", () => {
  test("can be set in the environment, and status and doctor say what it did", async () => {
    const [dir, away] = [join(temporaryFolder(), "backups"), join(temporaryFolder(), "away")];
    const env = {
      SIGNALBOX_BACKUP_DIR: dir,
      SIGNALBOX_BACKUP_EVERY: "20s",
      SIGNALBOX_BACKUP_COMMAND: `cp {} ${away}/`,
    };
    const server = await startServe([], { env });
    await mintKey(server.dataDir);
    await server.logged(FAILED);
    const data = ["--data", server.dataDir];
    const failed = await cliHere(["status", ...data]);
    expect(failed.stdout).toMatch(
      /^! The backup command failed at .*Z: exit code 1: cp: .*\n {2}run it yourself as the server's user/m,
    );
    const found = await cliHere(["doctor", ...data]);
    expect(found.stdout).toMatch(
      /^fail {2}backups +The backup command failed at .*Z: exit code 1/m,
    );
    expect(found.code).toBe(1);
    expect((await cliHere(["healthcheck", ...data])).code).toBe(0);
    mkdirSync(away);
    await server.logged('"backup sent"');
    const [sent = ""] = readdirSync(away);
    expect(verifyDatabase(join(away, sent)).ok).toBe(true);
    expect((await cliHere(["status", ...data])).stdout).toMatch(
      /^backup .*\.db, (not )?sent away/m,
    );
    server.kill("SIGTERM");
    expect(await server.exited).toBe(0);
  });
});

test("status says of a backup that it was sent, or not yet, once this server has tried", () => {
  const [newest, older] = [2, 1].map((at) => ({ file: `${at}.db`, at })) as [Made, Made];
  const said = (sending: BackupStatus["sending"]) =>
    describeSending({
      dir: "b",
      every_ms: 1,
      keep: 1,
      newest,
      verified_at: 1,
      failure: null,
      stuck_since: null,
      sending,
    });
  const failure = { at: 3, reason: "no", timed_out: false };
  expect(said(null)).toBeNull();
  expect(said({ sent: null, failure: null })).toBeNull();
  expect(said({ sent: null, failure })).toBe("not sent away yet");
  expect(said({ sent: older, failure: null })).toBe("not sent away yet");
  expect(said({ sent: newest, failure: null })).toBe("sent away");
});

test("a stderr that cannot be read ends with what was read", async () => {
  const tail = new Tail(
    new ReadableStream({
      start: (controller) => controller.enqueue(new TextEncoder().encode("one\ntwo")),
      pull: (controller) => controller.error(new Error("EIO")),
    }),
  );
  await tail.ended;
  expect(tail.text).toBe("one / two");
});

test("backup --every --command sends each backup", async () => {
  const { dataDir } = await seed({ signals: 30 });
  const [dir, away] = [temporaryFolder(), temporaryFolder()];
  const args = ["--every", "1s", "--keep", "1", dir, "--command", `cp {} ${away}`];
  const child = spawn(["backup", ...args, "--data", dataDir], {});
  await until(() => readdirSync(away).length >= 2);
  child.kill("SIGTERM");
  expect(await child.exited).toBe(0);
  for (const name of readdirSync(away).toSorted().slice(0, -1)) {
    expect(verifyDatabase(join(away, name))).toMatchObject({ ok: true, signals: 30 });
  }
  expect(await new Response(child.stderr).text()).toContain('"backup sent"');
});

/** Failed fsyncs: the server must stop acknowledging, end with the reason, and lose nothing. */
import { expect, setDefaultTimeout, test } from "bun:test";
import { cpSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { mintKey, sendHalf, type ServeProcess, signalbox, startServe } from "../../kit/cli.ts";
import type { LoadResult } from "../../kit/client.ts";
import { startLoad } from "../../kit/load.ts";
import { post, temporaryFolder } from "../../kit/setup.ts";
import { expectKept, expectSameIds, isFull, report, tryStart } from "../kit/faults.ts";
import { attachStrace, underStrace } from "../kit/strace.ts";
import { checkpointingAfter, variantOf } from "../kit/variant.ts";

setDefaultTimeout(300_000);

const DATABASE = "signalbox.db";
const LOG = "signalbox.db-wal";
/** More than a server takes before the fsync that fails. */
const SIGNALS_MAX = 20_000;

const upTo = (last: number): number[] => Array.from({ length: last }, (_, index) => index + 1);
/** Which fsync fails; strace counts them per thread. */
const sweep = isFull ? upTo(40) : [1, 20];
const shortSweep = isFull ? upTo(5) : [1];
/** More than a first start has: the test ends at the first that does not exist. */
const startSweep = isFull ? upTo(100) : [1, 13];

const failing = (nth: number | string): string[] => [
  "-e",
  `inject=fsync,fdatasync:error=EIO:when=${nth}`,
];
const only = (dataDir: string, files: readonly string[]): string[] =>
  files.flatMap((file) => ["-P", join(dataDir, file)]);

/** A data folder with a desk and a key, which no server has opened yet. */
async function prepare(): Promise<{ before: string; key: string }> {
  const before = join(temporaryFolder(), "data");
  const { key } = await mintKey(before);
  return { before, key };
}

/** Its last words are the reason, and what to do. */
async function expectDeath(server: ServeProcess): Promise<void> {
  expect(await server.exited).toBe(1);
  const last = server.log().at(-1);
  expect(last).toMatchObject({ level: "fatal" });
  expect(last?.["reason"]).toMatch(/^SQLITE_IOERR_FSYNC: /);
  expect(last?.msg).toContain("storage failed");
  expect(last?.msg).toContain("restart signalbox");
}

/** Restarts the server and sends again every signal of unknown outcome, and some acknowledged ones. */
async function expectExactlyOnce(
  dataDir: string,
  key: string,
  results: readonly LoadResult[],
): Promise<number> {
  const server = await startServe([], { dataDir });
  const again: LoadResult[] = [];
  for (const { clientId, outcome, id: before } of results) {
    if (before !== null || outcome === "refused") continue;
    const { status, body } = await post(server.url, key, { client_signal_id: clientId });
    expect([200, 201]).toContain(status);
    again.push({ clientId, id: String(body["id"]), outcome: status, unanswered: 0 });
  }
  await expectSameIds(server.url, key, results.filter(({ id }) => id !== null).slice(-5));
  const kept = expectKept(dataDir, [...results, ...again]);
  server.kill("SIGKILL");
  await server.exited;
  return kept;
}

interface Failure {
  readonly sweep: readonly number[];
  /** Whose N-th fsync fails. */
  readonly files: readonly string[];
  readonly program: readonly string[];
  readonly what: string;
}

/** For each N, a server under load whose N-th fsync fails. */
async function failUnderLoad({ sweep: all, files, program, what }: Failure): Promise<void> {
  const { before, key } = await prepare();
  let kept = 0;
  for (const nth of all) {
    const dataDir = join(temporaryFolder(), "data");
    cpSync(before, dataDir, { recursive: true });
    const record = join(temporaryFolder(), "recording");
    const options = ["-e", "trace=fsync,fdatasync", ...failing(nth), ...only(dataDir, files)];
    const faulty = underStrace(options, { record, program });
    const server = await startServe([], { dataDir, program: faulty });
    const half = await sendHalf(server.url, key);
    const load = startLoad({ url: server.url, key });
    while (load.results.every(({ outcome }) => outcome === 201)) {
      expect(load.results.length, "signals without a failure").toBeLessThan(SIGNALS_MAX);
      await load.more(1);
    }
    // The server is ending, and still waits for connections that it knows.
    await half.finish();
    expect(await half.closed).not.toContain("HTTP/1.1 201");
    await expectDeath(server);
    const results = await load.end();
    const outcomes = new Set(results.map(({ outcome }) => outcome));
    for (const outcome of outcomes) expect([201, 503, "broken", "refused"]).toContain(outcome);
    if (files.includes(LOG)) expect(outcomes.has(503), "a 503 for waiting requests").toBe(true);
    expect(readFileSync(record, "latin1")).toContain("(INJECTED)");
    expectKept(dataDir, results);
    kept += await expectExactlyOnce(dataDir, key, results);
  }
  report(`EIO at the N-th fsync of ${what}`, all.length, `${kept} signals kept`);
}

test("the N-th fsync of the log fails: nothing is acknowledged any more, and the process ends", () =>
  failUnderLoad({ sweep, files: [LOG, DATABASE], program: signalbox, what: "a commit" }));

test("the N-th fsync of the database fails in a checkpoint: the process ends, and the log has everything", () =>
  failUnderLoad({
    sweep,
    files: [DATABASE],
    // Otherwise forty fsyncs of the database take hundreds of thousands of signals.
    program: variantOf(checkpointingAfter(16)),
    what: "the database's file in a checkpoint",
  }));

test("the N-th fsync of the database fails when the writer copies a log that is too long", () =>
  failUnderLoad({
    sweep: shortSweep,
    files: [DATABASE],
    // The checkpointer never starts, so the log reaches the writer's own limit.
    program: variantOf(checkpointingAfter(8_192_000), {
      file: "store/sqlite/append/database.worker.ts",
      find: "LOG_PAGES_MAX = 65_536",
      replace: "LOG_PAGES_MAX = 64",
    }),
    what: "the database's file in a commit",
  }));

test("an fsync of the database fails during a stop: the exit code is 1, and the log has everything", async () => {
  const server = await startServe();
  const { key } = await mintKey(server.dataDir);
  const load = startLoad({ url: server.url, key });
  await load.more(100, 201);
  const results = await load.end();
  await attachStrace(server.pid, [...only(server.dataDir, [DATABASE]), ...failing("1+")]);
  server.kill("SIGTERM");
  await expectDeath(server);
  const kept = expectKept(server.dataDir, results);
  await expectExactlyOnce(server.dataDir, key, results);
  report("EIO at the fsync of a stop", 1, `${kept} signals kept`);
});

test("the N-th fsync of a first start fails: the error is one sentence, and the next start works", async () => {
  const times = { refused: 0, folder: 0 };
  for (const nth of startSweep) {
    const dataDir = join(temporaryFolder(), "data");
    const record = join(temporaryFolder(), "recording");
    const options = ["-y", "-e", "trace=fsync,fdatasync", ...failing(nth)];
    const { result, kill } = await tryStart(dataDir, underStrace(options, { record }));
    await kill();
    const file = /<(.*)>\).*\(INJECTED\)$/m.exec(readFileSync(record, "latin1"))?.[1];
    // There is no N-th fsync.
    if (file === undefined) break;
    if (file === dataDir) {
      // SQLite ignores a failed fsync of the folder.
      times.folder += 1;
      continue;
    }
    expect(result?.code).toBe(1);
    expect(result?.stderr).toMatch(/^signalbox: [^\n]*SQLITE_IOERR_FSYNC[^\n]*: [^\n]+\.\n$/);
    times.refused += 1;
    const next = await startServe([], { dataDir });
    next.kill("SIGKILL");
    await next.exited;
  }
  const { refused, folder } = times;
  expect(refused).toBeGreaterThan(0);
  report(
    "EIO at the N-th fsync of a first start",
    refused,
    `refused; ${folder} more were of the folder, which SQLite ignores`,
  );
});

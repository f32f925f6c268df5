/** Failed fsyncs: the server must stop acknowledging, end with the reason, and lose nothing. */
import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { sendHalf, type ServeProcess, signalbox, startServe } from "../../kit/cli.ts";
import { startLoad } from "../../kit/load.ts";
import { temporaryFolder } from "../../kit/setup.ts";
import { expectKept, isFull, kill, report, tryStart } from "../kit/faults.ts";
import { expectKeptAfterRestart, startService, underLoad } from "../kit/service.ts";
import { attachStrace, underStrace } from "../kit/strace.ts";
import { checkpointingAfter, edit, variantOf } from "../kit/variant.ts";

const DATABASE = "signalbox.db";
const LOG = "signalbox.db-wal";
/** More than a server takes before the fsync that fails. */
const SIGNALS_MAX = 20_000;

const upTo = (last: number): number[] => Array.from({ length: last }, (_, index) => index + 1);

const failing = (nth: number | string): string[] => [
  "-e",
  `inject=fsync,fdatasync:error=EIO:when=${nth}`,
];
const only = (dataDir: string, files: readonly string[]): string[] =>
  files.flatMap((file) => ["-P", join(dataDir, file)]);

/** Its last words are the reason, and what to do. */
async function expectDeath(server: ServeProcess): Promise<void> {
  expect(await server.exited).toBe(1);
  const last = server.log().at(-1);
  expect(last).toMatchObject({ level: "fatal" });
  expect(last?.["reason"]).toMatch(/^SQLITE_IOERR_FSYNC: /);
  expect(last?.msg).toContain("storage failed");
  expect(last?.msg).toContain("restart signalbox");
}

interface Failure {
  readonly what: string;
  /** Which fsyncs fail; strace counts them per thread. */
  readonly sweep: readonly number[];
  readonly files: readonly string[];
  readonly program: () => readonly string[];
}

const failures: Failure[] = [
  {
    what: "the log fails",
    sweep: isFull ? upTo(40) : [1, 20],
    files: [LOG, DATABASE],
    program: () => signalbox,
  },
  {
    what: "the database fails in a checkpoint",
    sweep: isFull ? upTo(40) : [1, 20],
    files: [DATABASE],
    // Otherwise forty fsyncs of the database take hundreds of thousands of signals.
    program: () => variantOf(checkpointingAfter(16)),
  },
  {
    what: "the database fails when the writer copies a log that is too long",
    sweep: isFull ? upTo(5) : [1],
    files: [DATABASE],
    // The checkpointer never starts, so the log reaches the writer's own limit.
    program: () =>
      variantOf(
        checkpointingAfter(8_192_000),
        edit(
          "store/sqlite/append/database.worker.ts",
          "LOG_PAGES_MAX = 65_536",
          "LOG_PAGES_MAX = 64",
        ),
      ),
  },
];

test.each(failures)(
  "the N-th fsync of $what: nothing is acknowledged any more, the process ends, and nothing is lost",
  async ({ what, sweep, files, program: makeProgram }) => {
    const original = makeProgram();
    let kept = 0;
    for (const nth of sweep) {
      const dataDir = join(temporaryFolder(), "data");
      const record = join(temporaryFolder(), "recording");
      const options = ["-e", "trace=fsync,fdatasync", ...failing(nth), ...only(dataDir, files)];
      const program = underStrace(options, { record, program: original });
      const service = await startService({ dataDir, program });
      const half = await sendHalf(service.url, service.key);
      const load = startLoad(service);
      while (load.results.every(({ outcome }) => outcome === 201)) {
        expect(load.results.length, "signals without a failure").toBeLessThan(SIGNALS_MAX);
        await load.more(1);
      }
      // The server is ending, and still waits for connections that it knows.
      await half.finish();
      expect(await half.closed).not.toContain("HTTP/1.1 201");
      await expectDeath(service.server);
      const results = await load.end();
      const outcomes = new Set(results.map(({ outcome }) => outcome));
      for (const outcome of outcomes) expect([201, 503, "broken", "refused"]).toContain(outcome);
      if (files.includes(LOG)) expect(outcomes.has(503), "a 503 for waiting requests").toBe(true);
      expect(readFileSync(record, "latin1")).toContain("(INJECTED)");
      expectKept(dataDir, results);
      kept += await expectKeptAfterRestart(service, results);
    }
    report(`EIO at the N-th fsync of ${what}`, sweep.length, `${kept} signals kept`);
  },
);

test("an fsync of the database fails during a stop: the exit code is 1, and the log has everything", async () => {
  const service = await underLoad();
  const { server, dataDir, load } = service;
  const results = await load.end();
  await attachStrace(server.pid, [...only(dataDir, [DATABASE]), ...failing("1+")]);
  server.kill("SIGTERM");
  await expectDeath(server);
  expectKept(dataDir, results);
  const kept = await expectKeptAfterRestart(service, results);
  report("EIO at the fsync of a stop", 1, `${kept} signals kept`);
});

test("the N-th fsync of a first start fails: the error is one sentence, and the next start works", async () => {
  const times = { refused: 0, folder: 0 };
  // More than a first start has: the test ends at the first that does not exist.
  for (const nth of isFull ? upTo(100) : [1, 13]) {
    const dataDir = join(temporaryFolder(), "data");
    const record = join(temporaryFolder(), "recording");
    const options = ["-y", "-e", "trace=fsync,fdatasync", ...failing(nth)];
    const { result, end } = await tryStart(dataDir, underStrace(options, { record }));
    await end();
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
    await kill(await startServe([], { dataDir }));
  }
  const { refused, folder } = times;
  expect(refused).toBeGreaterThan(0);
  const found = `refused; ${folder} more were of the folder, which SQLite ignores`;
  report("EIO at the N-th fsync of a first start", refused, found);
});

import { expect, setDefaultTimeout, test } from "bun:test";
import { cpSync, existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { signalbox, mintKey, sendHalf, type ServeProcess, spawn, startServe } from "../_cli.ts";
import type { LoadResult } from "../_client.ts";
import { startLoad } from "../_load.ts";
import { callUrl, signal, temporaryFolder } from "../_setup.ts";
import { expectKept, isFull, report } from "./_faults.ts";
import { keepNothing, readRecording, recordingOptions } from "./_replay.ts";
import { attachStrace, underStrace } from "./_strace.ts";
import { checkpointingAfter, variantOf } from "./_variant.ts";

setDefaultTimeout(300_000);

const DATABASE = "signalbox.db";
const LOG = "signalbox.db-wal";

const countTo = (last: number): number[] => Array.from({ length: last }, (_, index) => index + 1);
/** N of the N-th fsync that fails; strace counts them by thread. */
const sweep = isFull ? countTo(40) : [1, 20];
const shortSweep = isFull ? countTo(5) : [1];
/** More than there are: it ends at the first that is not there. */
const startSweep = isFull ? countTo(100) : [1, 13];

const failing = (nth: number | string): string[] => [
  "-e",
  `inject=fsync,fdatasync:error=EIO:when=${nth}`,
];

const only = (files: readonly string[]): string[] => files.flatMap((file) => ["-P", file]);

/** A data folder with a desk and a key, that no server has opened yet. */
async function prepare(): Promise<{ before: string; key: string }> {
  const before = join(temporaryFolder(), "data");
  const { key } = await mintKey(before);
  return { before, key };
}

/** The last thing that it says is why, and what to do. */
async function expectDeath(server: ServeProcess): Promise<void> {
  expect(await server.exited).toBe(1);
  const last = server.log().at(-1);
  expect(last).toMatchObject({ level: "fatal" });
  expect(last?.["reason"]).toMatch(/^SQLITE_IOERR_FSYNC: /);
  expect(last?.msg).toContain("storage failed");
  expect(last?.msg).toContain("restart signalbox");
}

/** Sends again what has no 2xx, and some that has: each is stored once, under the id that was told. */
async function expectExactlyOnce(
  dataDir: string,
  key: string,
  results: readonly LoadResult[],
): Promise<void> {
  const server = await startServe([], { dataDir });
  const sent = results.filter(({ outcome }) => outcome !== "refused");
  const open = sent.filter(({ id }) => id === null);
  const told = sent.filter(({ id }) => id !== null).slice(-5);
  const again: LoadResult[] = [];
  for (const { clientId, id: before } of [...open, ...told]) {
    const { status, body } = await callUrl(server.url, "/v1/signals", {
      method: "POST",
      headers: { Authorization: `Bearer ${key}`, "Content-Type": "application/json" },
      body: JSON.stringify({ ...signal, client_signal_id: clientId }),
    });
    const id = String(body["id"]);
    if (before === null) expect([200, 201]).toContain(status);
    else expect({ status, id }).toEqual({ status: 200, id: before });
    again.push({ clientId, id, outcome: status, unanswered: 0 });
  }
  expectKept(dataDir, [...results, ...again]);
  server.kill("SIGKILL");
  await server.exited;
}

interface Failure {
  readonly nth: number;
  /** The database's files of which the N-th fsync fails. */
  readonly files: readonly string[];
  readonly program: readonly string[];
}

/** One server under load whose N-th fsync fails. Returns how many signals it had acknowledged by then. */
async function failUnderLoad(
  { before, key }: { before: string; key: string },
  { nth, files, program }: Failure,
): Promise<number> {
  const dataDir = join(temporaryFolder(), "data");
  cpSync(before, dataDir, { recursive: true });
  const record = join(temporaryFolder(), "recording");
  const paths = only(files.map((file) => join(dataDir, file)));
  const options = [...recordingOptions, ...failing(nth), ...paths];
  const faulty = underStrace(options, { record, program });
  const server = await startServe([], { dataDir, program: faulty });
  const half = await sendHalf(server.url, key);
  const load = startLoad({ url: server.url, key });
  while (load.results.every(({ outcome }) => outcome === 201)) {
    expect(load.results.length, "signals after which nothing has failed").toBeLessThan(20_000);
    await load.more(1);
  }
  // It comes while the server ends, and waits for those whom it knows.
  await half.finish();
  expect(await half.closed).not.toContain("HTTP/1.1 201");
  await expectDeath(server);
  const results = await load.end();
  const outcomes = new Set(results.map(({ outcome }) => outcome));
  for (const outcome of outcomes) expect([201, 503, "broken", "refused"]).toContain(outcome);
  if (files.includes(LOG)) expect(outcomes.has(503), "whoever waited was told").toBe(true);
  expect(readFileSync(record, "latin1")).toContain("(INJECTED)");

  // What the disk has, if the failed fsync took with it all that it should have written: had anything
  // been acknowledged on the strength of it, or of a later one, that would be missing here.
  const left = join(temporaryFolder(), "left");
  const recording = readRecording(record);
  recording.cutAt(recording.lastMoment, before, left, keepNothing);
  // Of a log that was not recorded no fsync failed, so it is there, unless the server did away with it.
  const hasLog = !files.includes(LOG) && existsSync(join(dataDir, LOG));
  if (hasLog) cpSync(join(dataDir, LOG), join(left, LOG));
  const kept = expectKept(left, results);
  await expectExactlyOnce(nth % 2 === 0 ? left : dataDir, key, results);
  return kept;
}

/** A server on an empty folder: how it ended, or that it takes signals. */
async function tryStart(
  dataDir: string,
  program: readonly string[],
): Promise<{ started: boolean; code: number; stderr: string }> {
  const child = spawn(["serve", "--data", dataDir, "--listen", "127.0.0.1:0"], { program });
  let stderr = "";
  let started = false;
  for await (const chunk of child.stderr.pipeThrough(new TextDecoderStream())) {
    stderr += chunk;
    if (!stderr.includes("takes signals at") || started) continue;
    started = true;
    child.kill("SIGKILL");
  }
  return { started, code: await child.exited, stderr };
}

test("the N-th fsync of the log fails: nothing is acknowledged any more, and the process ends", async () => {
  const prepared = await prepare();
  let kept = 0;
  for (const nth of sweep) {
    kept += await failUnderLoad(prepared, { nth, files: [LOG, DATABASE], program: signalbox });
  }
  report("fsync fails", {
    injected: `EIO at the N-th fsync of the thread that commits, N = ${sweep[0]} to ${sweep.at(-1)}`,
    times: sweep.length,
    checked: `503, no 201 after it, exit code 1 and why; none of ${kept} acknowledged is lost; the others, sent again, are stored once`,
  });
});

test("the N-th fsync of the database fails, in a checkpoint: the process ends, and the log has everything", async () => {
  const prepared = await prepare();
  // Forty fsyncs of the database would take some hundred thousand signals otherwise.
  const program = variantOf(checkpointingAfter(16));
  let kept = 0;
  for (const nth of sweep) {
    kept += await failUnderLoad(prepared, { nth, files: [DATABASE], program });
  }
  report("fsync fails", {
    injected: `EIO at the N-th fsync of the database's file in a checkpoint, N = ${sweep[0]} to ${sweep.at(-1)}`,
    times: sweep.length,
    checked: `nothing more is taken, exit code 1 and why; none of ${kept} acknowledged is lost; the others, sent again, are stored once`,
  });
});

test("the N-th fsync of the database fails, in a commit that copies a log which is too long: the same", async () => {
  const prepared = await prepare();
  // The checkpointer has nothing to do, and the log's last resort is reached at once.
  const program = variantOf(checkpointingAfter(8_192_000), {
    file: "store/sqlite/writer.worker.ts",
    text: "LOG_PAGES_MAX = 65_536",
    replacement: "LOG_PAGES_MAX = 64",
  });
  let kept = 0;
  for (const nth of shortSweep) {
    kept += await failUnderLoad(prepared, { nth, files: [DATABASE], program });
  }
  report("fsync fails", {
    injected: `EIO at the N-th fsync of the database's file in a commit, N = ${shortSweep[0]} to ${shortSweep.at(-1)}`,
    times: shortSweep.length,
    checked: `nothing more is taken, exit code 1 and why; none of ${kept} acknowledged is lost; the others, sent again, are stored once`,
  });
});

test("an fsync of the database fails while it stops: that is no clean end, and the log has everything", async () => {
  const server = await startServe();
  const { key } = await mintKey(server.dataDir);
  const load = startLoad({ url: server.url, key });
  await load.more(100, 201);
  const results = await load.end();
  await attachStrace(server.pid, [...only([join(server.dataDir, DATABASE)]), ...failing("1+")]);
  server.kill("SIGTERM");
  await expectDeath(server);
  const kept = expectKept(server.dataDir, results);
  await expectExactlyOnce(server.dataDir, key, results);
  report("fsync fails", {
    injected: "EIO at the fsync of the database's file while the server stops",
    times: 1,
    checked: `exit code 1 and why; none of ${kept} acknowledged is lost`,
  });
});

test("the N-th fsync of a first start fails: it says so in one sentence, and the next start works", async () => {
  const times = { refused: 0, folder: 0 };
  for (const nth of startSweep) {
    const dataDir = join(temporaryFolder(), "data");
    const record = join(temporaryFolder(), "recording");
    const options = ["-y", "-e", "trace=fsync,fdatasync", ...failing(nth)];
    const { started, code, stderr } = await tryStart(dataDir, underStrace(options, { record }));
    const file = /<(.*)>\).*\(INJECTED\)$/m.exec(readFileSync(record, "latin1"))?.[1];
    // There is no N-th.
    if (file === undefined) break;
    if (file === dataDir) {
      // Where SQLite syncs the names in a folder, it passes over a failure.
      times.folder += 1;
      continue;
    }
    expect({ started, code }).toEqual({ started: false, code: 1 });
    expect(stderr).toMatch(/^signalbox: [^\n]*SQLITE_IOERR_FSYNC[^\n]*: [^\n]+\.\n$/);
    times.refused += 1;
    const next = await startServe([], { dataDir });
    next.kill("SIGKILL");
    await next.exited;
  }
  const { refused, folder } = times;
  expect(refused).toBeGreaterThan(0);
  report("fsync fails", {
    injected: `EIO at the N-th fsync of a first start${isFull ? `, N = 1 to ${refused + folder}` : ""}`,
    times: refused,
    checked: `exit code 1 and one sentence, and the next start works${folder === 0 ? "" : `; ${folder} more were of the folder itself, which SQLite passes over`}`,
  });
});

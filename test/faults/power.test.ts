import { expect, setDefaultTimeout, test } from "bun:test";
import { closeSync, cpSync, openSync, readFileSync, readSync } from "node:fs";
import { join } from "node:path";
import { freePort, signalbox, mintKey, startServe } from "../_cli.ts";
import type { LoadResult } from "../_client.ts";
import { startLoad } from "../_load.ts";
import { callUrl, query, signal, temporaryFolder } from "../_setup.ts";
import { canMount, FragileDisk } from "./_disk.ts";
import { expectKept, isFull, report, scale } from "./_faults.ts";
import {
  keepAll,
  keepNothing,
  keepSomeChanges,
  keepSomeSectors,
  readRecording,
  recordingOptions,
} from "./_replay.ts";
import { underStrace } from "./_strace.ts";
import { checkpointingAfter, variantOf } from "./_variant.ts";

setDefaultTimeout(300_000);

/** What a power cut has left, opened by a server that takes signals again. */
interface Left {
  readonly dataDir: string;
  readonly url: string;
  readonly key: string;
  /** Of all requests before the cut at least. */
  readonly results: readonly LoadResult[];
  readonly wasCheckpointing: boolean;
}

interface Cuts {
  readonly program: readonly string[];
  readonly times: number;
  /** Of the file system; false for a control. */
  readonly barriers?: boolean;
}

/** One disk, one load that never gives up, and one power cut after the other. */
async function* cutsOfDisk({ program, times, barriers = true }: Cuts): AsyncGenerator<Left> {
  const disk = new FragileDisk(384, { barriers });
  const data = (): string => join(disk.root, "data");
  const { key } = await mintKey(data());
  disk.settle();
  const listen = `127.0.0.1:${await freePort()}`;
  const url = `http://${listen}`;
  const load = startLoad({ url, key, connections: 16, retry: true });
  let server = await startServe([], { dataDir: data(), listen, program });
  for (let cut = 0; cut < times; cut += 1) {
    const atStart = readCheckpointState(data());
    // In the midst of a checkpoint every other time, and anywhere else in between.
    if (cut % 2 === 1) while (!isCheckpointing(data(), atStart)) await Bun.sleep(1);
    else await load.more(1 + Math.floor(Math.random() * 3_000), 201);
    await disk.freeze(server.pid);
    const wasCheckpointing = isCheckpointing(data(), atStart);
    await disk.cutPower(server.pid);
    await server.exited;
    server = await startServe([], { dataDir: data(), listen, program });
    // With some that are new already: they hold, too.
    yield { dataDir: data(), url, key, results: [...load.results], wasCheckpointing };
  }
  await load.end();
  server.kill("SIGTERM");
  expect(await server.exited).toBe(0);
}

/** Copies its log often. */
const recordable = () => variantOf(checkpointingAfter(512));

/** Starts a server that strace records, and load on it. */
async function record(program: readonly string[]) {
  const dataDir = join(temporaryFolder(), "data");
  const { key } = await mintKey(dataDir);
  const before = join(temporaryFolder(), "before");
  cpSync(dataDir, before, { recursive: true });
  const path = join(temporaryFolder(), "recording");
  const recorded = underStrace(recordingOptions, { record: path, program });
  const server = await startServe([], { dataDir, program: recorded });
  const load = startLoad({ url: server.url, key, connections: 16 });
  return { before, dataDir, key, load, path, server };
}

/** One recording, and what is left of it where it is cut at any of its lines. */
async function* cutsOfRecording({ program, times }: Cuts): AsyncGenerator<Left> {
  const { before, key, load, path, server } = await record(program);
  await load.more(2_500, 201);
  server.kill("SIGKILL");
  await server.exited;
  const all = await load.end();
  const recording = readRecording(path);
  for (let cut = 0; cut < times; cut += 1) {
    const { firstMoment, lastMoment } = recording;
    const moment = firstMoment + Math.floor(Math.random() * (lastMoment - firstMoment + 1));
    const dataDir = join(temporaryFolder(), "left");
    // Of what was not synced.
    const keep = [keepNothing, keepSomeChanges, keepSomeSectors][cut % 3] ?? keepNothing;
    recording.cutAt(moment, before, dataDir, keep);
    const answered = recording.answeredBefore(moment);
    const results = all.filter(({ id }) => id !== null && answered.has(id));
    const opened = await startServe([], { dataDir, program });
    yield { dataDir, url: opened.url, key, results, wasCheckpointing: false };
    opened.kill("SIGKILL");
    await opened.exited;
  }
}

interface CheckpointState {
  /** Frames of the log that are in the database, and that a checkpoint set out to copy to it. */
  readonly copied: number;
  readonly attempted: number;
}

/** From the log's index (https://sqlite.org/walformat.html: nBackfill and nBackfillAttempted). */
function readCheckpointState(dataDir: string): CheckpointState {
  const bytes = Buffer.alloc(132);
  const file = openSync(join(dataDir, "signalbox.db-shm"), "r");
  readSync(file, bytes, 0, bytes.length, 0);
  closeSync(file);
  return { copied: bytes.readUInt32LE(96), attempted: bytes.readUInt32LE(128) };
}

/** A log that was recovered looks like one whose checkpoint has not begun to copy, until there is a new one. */
function isCheckpointing(dataDir: string, { attempted: recovered }: CheckpointState): boolean {
  const { attempted, copied } = readCheckpointState(dataDir);
  return attempted > copied && attempted !== recovered;
}

const acknowledgedIn = (results: readonly LoadResult[]): LoadResult[] =>
  results.filter(({ outcome }) => outcome === 201 || outcome === 200);

function countLost(dataDir: string, results: readonly LoadResult[]): number {
  const rows = query<{ id: string }>(dataDir, "SELECT id FROM signals");
  const stored = new Set<string | null>(rows.map(({ id }) => id));
  return acknowledgedIn(results).filter(({ id }) => !stored.has(id)).length;
}

/** Some of what was acknowledged, sent again: each has its id. */
async function expectSameIds({ url, key, results }: Left): Promise<void> {
  const acknowledged = acknowledgedIn(results);
  const step = Math.ceil(acknowledged.length / 5);
  const sample = acknowledged.filter((_, index) => index % step === 0);
  for (const { clientId, id } of sample) {
    const { status, body } = await callUrl(url, "/v1/signals", {
      method: "POST",
      headers: { Authorization: `Bearer ${key}`, "Content-Type": "application/json" },
      body: JSON.stringify({ ...signal, client_signal_id: clientId }),
    });
    expect({ status, body }).toEqual({ status: 200, body: { id, deduped: true } });
  }
}

async function expectAllKept(cuts: AsyncGenerator<Left>, fault: string, injected: string) {
  const found = { cuts: 0, acknowledged: 0, checkpointing: 0 };
  for await (const left of cuts) {
    const kept = expectKept(left.dataDir, left.results);
    await expectSameIds(left);
    found.cuts += 1;
    found.acknowledged = Math.max(found.acknowledged, kept);
    if (left.wasCheckpointing) found.checkpointing += 1;
  }
  expect(found.acknowledged).toBeGreaterThan(0);
  const inCheckpoint = found.checkpointing === 0 ? "" : `, ${found.checkpointing} in a checkpoint`;
  report(fault, {
    injected: injected + inCheckpoint,
    times: found.cuts,
    checked: `none of ${found.acknowledged} acknowledged signals is lost or stored twice`,
  });
}

/** The cuts must be able to take something away: a control loses, sooner or later. */
async function expectLoss(cuts: AsyncGenerator<Left>, control: string): Promise<void> {
  let times = 0;
  for await (const { dataDir, results } of cuts) {
    times += 1;
    const lost = countLost(dataDir, results);
    if (lost === 0) continue;
    const all = acknowledgedIn(results).length;
    const checked = `${lost} of ${all} acknowledged signals are lost, as they must be`;
    report("power loss, control", { injected: control, times, checked });
    return;
  }
  throw new Error(`${control}: nothing is lost in ${times} power cuts, so they cut nothing`);
}

const notSynced = (): readonly string[] =>
  variantOf({
    file: "store/sqlite/open.ts",
    text: "synchronous = FULL",
    replacement: "synchronous = NORMAL",
  });

/** The bound on a control's patience. */
const CONTROL_CUTS_MAX = 10;

/** Where mounting is not allowed, a recording stands for the disk in every run; at full scale both are run. */
function ways(): { disk: boolean; recording: boolean } {
  const disk = canMount();
  if (!disk) {
    const checked = "what a server wrote is recorded and replayed instead, without a file system";
    report("power loss", { injected: "MOUNTING IS NOT ALLOWED HERE", times: 0, checked });
  }
  return { disk, recording: isFull || !disk };
}

const what = "a disk with a cache and the machine lose their power";
const whatReplayed = "what was not synced is dropped from the writes, or any half of it";

test("what was acknowledged is there after a power cut", async () => {
  const { disk, recording } = ways();
  if (disk) {
    await expectAllKept(
      cutsOfDisk({ program: signalbox, times: scale(20, 2) }),
      "power loss",
      what,
    );
  }
  if (recording) {
    const cuts = cutsOfRecording({
      program: recordable(),
      times: scale(45, 6),
    });
    await expectAllKept(cuts, "power loss, replayed", whatReplayed);
  }
});

test("with commits that are not synced it is not: the power cuts do take something away", async () => {
  const { disk, recording } = ways();
  const control = { program: notSynced(), times: CONTROL_CUTS_MAX };
  if (disk) await expectLoss(cutsOfDisk(control), "synchronous=NORMAL");
  if (recording) await expectLoss(cutsOfRecording(control), "synchronous=NORMAL, replayed");
});

test("nor is it where a disk is not told to empty its cache: that is lost, too", async () => {
  // Of a recording there is nothing to be seen here: it has no disk.
  if (!ways().disk) return;
  const cuts = cutsOfDisk({ program: signalbox, times: CONTROL_CUTS_MAX, barriers: false });
  await expectLoss(cuts, "an ext4 without barriers");
});

test("a recording is whole: replayed to its end it makes the same files, byte for byte", async () => {
  const { before, dataDir, load, path, server } = await record(recordable());
  await load.more(600, 201);
  // Nothing is being written any more when it is killed.
  await load.end();
  server.kill("SIGKILL");
  await server.exited;
  const recording = readRecording(path);
  const into = join(temporaryFolder(), "left");
  recording.cutAt(recording.lastMoment, before, into, keepAll);
  for (const name of ["signalbox.db", "signalbox.db-wal"]) {
    const isSame = readFileSync(join(into, name)).equals(readFileSync(join(dataDir, name)));
    expect(isSame, name).toBe(true);
  }
  report("power loss, replayed", {
    injected: "nothing: a recording is replayed to its end",
    times: 1,
    checked: "the files are the same, byte for byte",
  });
});

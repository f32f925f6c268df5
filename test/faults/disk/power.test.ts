/** Power cuts under load, on a disk with a volatile write cache. */
import { expect, test } from "bun:test";
import { closeSync, openSync, readSync } from "node:fs";
import { join } from "node:path";
import { freePort, mintKey, signalbox, startServe } from "../../kit/cli.ts";
import type { LoadResult } from "../../kit/client.ts";
import { startLoad } from "../../kit/load.ts";
import { query } from "../../kit/setup.ts";
import { FragileDisk } from "../kit/disk.ts";
import { acknowledgedIn, expectKept, expectSameIds, report, scale, stop } from "../kit/faults.ts";
import { variantOf } from "../kit/variant.ts";

/** A control must lose a signal in at most so many cuts. */
const CONTROL_CUTS_MAX = 10;

/** A server on what the cut has left. */
interface Left {
  readonly dataDir: string;
  readonly url: string;
  readonly key: string;
  /** Of all requests before the cut, and of some after it. */
  readonly results: readonly LoadResult[];
  readonly wasCheckpointing: boolean;
}

interface Cuts {
  readonly program?: readonly string[];
  readonly times: number;
  /** False: the file system never flushes the disk's cache. */
  readonly barriers?: boolean;
}

/** Cuts the power again and again under a load that retries. */
async function* cuts({ program = signalbox, times, barriers = true }: Cuts): AsyncGenerator<Left> {
  const disk = new FragileDisk(384, { barriers });
  const data = (): string => join(disk.root, "data");
  const { key } = await mintKey(data());
  disk.settle();
  const listen = `127.0.0.1:${await freePort()}`;
  const url = `http://${listen}`;
  const load = startLoad({ url, key, connections: 16, retry: true });
  let server = await startServe([], { dataDir: data(), listen, program });
  for (let cut = 0; cut < times; cut += 1) {
    const atStart = checkpointState(data());
    // Every other cut is in a checkpoint.
    if (cut % 2 === 1) while (!isCheckpointing(data(), atStart)) await Bun.sleep(1);
    else await load.more(1 + Math.floor(Math.random() * 3_000), 201);
    await disk.freeze(server.pid);
    const wasCheckpointing = isCheckpointing(data(), atStart);
    await disk.cutPower(server.pid);
    await server.exited;
    server = await startServe([], { dataDir: data(), listen, program });
    yield { dataDir: data(), url, key, results: [...load.results], wasCheckpointing };
  }
  await load.end();
  await stop(server);
}

interface CheckpointState {
  /** Frames of the log that are copied to the database, and that a checkpoint began to copy. */
  readonly copied: number;
  readonly attempted: number;
}

/** From the log's index (https://sqlite.org/walformat.html: nBackfill and nBackfillAttempted). */
function checkpointState(dataDir: string): CheckpointState {
  const bytes = Buffer.alloc(132);
  const file = openSync(join(dataDir, "signalbox.db-shm"), "r");
  readSync(file, bytes, 0, bytes.length, 0);
  closeSync(file);
  return { copied: bytes.readUInt32LE(96), attempted: bytes.readUInt32LE(128) };
}

/** Until its first checkpoint, a recovered log looks like one in a checkpoint that has copied nothing. */
function isCheckpointing(dataDir: string, { attempted: recovered }: CheckpointState): boolean {
  const { attempted, copied } = checkpointState(dataDir);
  return attempted > copied && attempted !== recovered;
}

test("acknowledged signals survive a power cut", async () => {
  let [times, acknowledged, inCheckpoint] = [0, 0, 0];
  for await (const { dataDir, url, key, results, wasCheckpointing } of cuts({
    times: scale(20, 2),
  })) {
    acknowledged = expectKept(dataDir, results);
    const all = acknowledgedIn(results);
    const step = Math.ceil(all.length / 5);
    await expectSameIds(
      url,
      key,
      all.filter((_, index) => index % step === 0),
    );
    times += 1;
    if (wasCheckpointing) inCheckpoint += 1;
  }
  expect(acknowledged).toBeGreaterThan(0);
  report("power cut", times, `${inCheckpoint} in a checkpoint; ${acknowledged} signals kept`);
});

const notSynced = {
  file: "store/sqlite/files/open.ts",
  find: "synchronous = FULL",
  replace: "synchronous = NORMAL",
};

// Without these controls, cuts that take nothing away would prove nothing.
test.each([
  { control: "synchronous=NORMAL", edits: [notSynced], barriers: true },
  { control: "an ext4 without barriers", edits: [], barriers: false },
])("control: a power cut loses signals with $control", async ({ control, edits, barriers }) => {
  const program = edits.length === 0 ? signalbox : variantOf(...edits);
  let times = 0;
  for await (const { dataDir, results } of cuts({ program, times: CONTROL_CUTS_MAX, barriers })) {
    times += 1;
    const rows = query<{ id: string }>(dataDir, "SELECT id FROM signals");
    const stored = new Set<string | null>(rows.map(({ id }) => id));
    const lost = acknowledgedIn(results).filter(({ id }) => !stored.has(id)).length;
    if (lost === 0) continue;
    report(`power cut, ${control}`, times, `${lost} acknowledged signals lost, as they must be`);
    return;
  }
  throw new Error(`${control}: ${times} power cuts have lost nothing`);
});

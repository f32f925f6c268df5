import type { Database } from "bun:sqlite";
import { describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { AppError } from "../../src/domain/errors.ts";
import type { Signal } from "../../src/domain/signal/signal.ts";
import type { StorageProblem, Submission, Transaction } from "../../src/domain/storage/append.ts";
import { BatchCommitter } from "../../src/store/sqlite/append/batch.ts";
import { QUEUE_METADATA_UNITS_MAX } from "../../src/store/records/queue.ts";
import { Writer } from "../../src/store/sqlite/append/writer.ts";
import { openDatabase } from "../../src/store/sqlite/files/open.ts";
import { onCleanup, query, rejection } from "../kit/setup.ts";
import { noEvents } from "../storage/start.ts";
import { prepare } from "./_submissions.ts";

async function startWriter(dataDir: string) {
  const fatal: string[] = [];
  const problems: StorageProblem[] = [];
  const transactions: Transaction[] = [];
  const writer = await Writer.start(
    { dataDir, externalCheckpoints: false },
    {
      ...noEvents,
      onFatal: (reason) => fatal.push(reason),
      onProblem: (problem) => problems.push(problem),
      onTransaction: (transaction) => transactions.push(transaction),
    },
  );
  onCleanup(() => writer.close());
  return { writer, fatal, problems, transactions };
}

const count = (dataDir: string) =>
  query<{ n: number }>(dataDir, "SELECT count(*) AS n FROM signals")[0]?.n;

/** Transactions in the write-ahead log: the frames that end one (https://sqlite.org/fileformat2.html#walformat). */
function commits(dataDir: string): number {
  const wal = readFileSync(join(dataDir, "signalbox.db-wal"));
  const frameBytes = 24 + wal.readUInt32BE(8);
  const salt = wal.subarray(16, 24);
  let commitCount = 0;
  for (let at = 32; at + frameBytes <= wal.length; at += frameBytes) {
    const isCurrent = wal.subarray(at + 8, at + 16).equals(salt);
    if (isCurrent && wal.readUInt32BE(at + 4) > 0) commitCount += 1;
  }
  return commitCount;
}

const unavailable = new AppError("unavailable", { retryAfterS: 1 });
const poison = { source: "x" as Signal["source"] };

describe("group commit", () => {
  test("signals that arrive during a commit become the next batch", async () => {
    const { dataDir, submit } = await prepare();
    const { writer } = await startWriter(dataDir);
    const before = commits(dataDir);
    const waiting: Promise<unknown>[] = [];
    for (let turn = 0; turn < 100; turn++) {
      for (let each = 0; each < 10; each++) waiting.push(writer.append(submit()));
      await new Promise((next) => setImmediate(next));
    }
    await Promise.all(waiting);
    expect(count(dataDir)).toBe(1_000);
    expect(commits(dataDir) - before).toBeLessThanOrEqual(100);
  });

  test("a single signal is committed without waiting for others", async () => {
    const { dataDir, submit } = await prepare();
    const { writer, transactions } = await startWriter(dataDir);
    const before = commits(dataDir);
    for (let round = 0; round < 5; round++) await writer.append(submit());
    expect(commits(dataDir) - before).toBe(5);
    expect(transactions.length).toBe(5);
    for (const { signals, durationMs, commitMs } of transactions) {
      expect(signals).toBe(1);
      expect(commitMs).toBeGreaterThan(0);
      expect(durationMs).toBeGreaterThan(commitMs);
    }
  });

  test("batches of any size store every signal in order, and find its duplicates", async () => {
    const { dataDir, db, submit } = await prepare();
    const committer = new BatchCommitter(db);
    const sent: Submission[] = [];
    const ids: string[] = [];
    for (let size = 1; size <= 30; size += 1) {
      const fresh = Array.from({ length: size }, (_, index) => {
        const client_signal_id = `${size}-${index}`;
        return submit({
          signal: { client_signal_id, symbol: `S${client_signal_id}`, price: index },
        });
      });
      // Repeats the first half, and one signal of each earlier batch.
      const batch = [...fresh, ...sent.filter((_, index) => index % 29 === 0)];
      batch.splice(Math.ceil(size / 2), 0, ...fresh.slice(0, Math.ceil(size / 2)));
      const outcomes = committer.commit(batch);
      sent.push(...fresh);
      for (const [index, { signal }] of batch.entries()) {
        const outcome = outcomes[index];
        const at = sent.findIndex((one) => one.signal.client_signal_id === signal.client_signal_id);
        if (outcome?.kind === "stored") ids[at] ??= outcome.id;
        else expect(outcome).toEqual({ kind: "duplicate", id: ids[at] ?? "", differs: [] });
      }
    }
    expect(ids.length).toBe(sent.length);
    const rows = query<Record<string, unknown>>(
      dataDir,
      "SELECT id, client_signal_id, symbol, price FROM signals ORDER BY seq",
    );
    expect(rows).toEqual(
      sent.map(({ signal: { client_signal_id, symbol, price } }, index) => ({
        id: ids[index],
        client_signal_id,
        symbol,
        price,
      })),
    );
  });
});

test("large metadata counts towards the queue's limit until it is stored", async () => {
  const { dataDir, submit } = await prepare();
  const { writer } = await startWriter(dataDir);
  const metadata = `{"a":"${"x".repeat(64_000)}"}`;
  const fitting = Math.floor(QUEUE_METADATA_UNITS_MAX / metadata.length);
  for (let round = 0; round < 2; round++) {
    const waiting = Array.from({ length: fitting }, () =>
      writer.append(submit({ signal: { metadata } })),
    );
    expect(await rejection(writer.append(submit({ signal: { metadata } })))).toEqual(unavailable);
    await Promise.all(waiting);
  }
  expect(count(dataDir)).toBe(2 * fitting);
});

describe("a submission that the database refuses", () => {
  test("fails alone: the rest of the batch is stored in order", async () => {
    const { dataDir, submit } = await prepare();
    const { writer, problems, fatal } = await startWriter(dataDir);
    const results = await Promise.allSettled([
      writer.append(submit({ signal: { symbol: "A" } })),
      writer.append(submit({ signal: { ...poison, symbol: "B", client_signal_id: "used?" } })),
      writer.append(submit({ signal: { symbol: "C" } })),
    ]);
    expect(results.map(({ status }) => status)).toEqual(["fulfilled", "rejected", "fulfilled"]);
    expect(results[1]).toMatchObject({
      reason: { message: expect.stringContaining("SQLITE_CONSTRAINT") },
    });
    expect(query(dataDir, "SELECT symbol FROM signals ORDER BY seq")).toEqual([
      { symbol: "A" },
      { symbol: "C" },
    ]);
    expect(problems).toEqual([
      {
        kind: "failed",
        obstacle: null,
        reason: expect.stringContaining("SQLITE_CONSTRAINT"),
        error: expect.stringContaining("SQLITE_CONSTRAINT"),
        signals: 1,
      },
    ]);
    expect(fatal).toEqual([]);
    expect(writer.queue.outage).toBeNull();
    const repeated = await writer.append(submit({ signal: { client_signal_id: "used?" } }));
    expect(repeated.deduped).toBe(false);
  });

  test("is reported without its content, and leaves the record of the key's last use", async () => {
    const { db, registry, submit } = await prepare();
    const secret = { source: "secret-venue" as Signal["source"], symbol: "secret-symbol" };
    const outcomes = new BatchCommitter(db).commit([
      submit(),
      submit({ signal: secret }),
      submit(),
    ]);
    expect(outcomes.map(({ kind }) => kind)).toEqual(["stored", "failed", "stored"]);
    expect(JSON.stringify(outcomes)).not.toContain("secret");
    expect((await registry.listKeys("alpha"))[0]?.last_used_at).toBe(1_000);
  });
});

function limit(db: Database, pagesMore: number | null): void {
  const { page_count: pages } = db.query("PRAGMA page_count").get() as { page_count: number };
  db.run(`PRAGMA max_page_count = ${pagesMore === null ? 2 ** 32 - 2 : pages + pagesMore}`);
}

test("on a full disk nothing of a batch is stored, and storing continues when there is space", async () => {
  const large = { metadata: `{"a":"${"x".repeat(60_000)}"}` };
  const { db, dataDir, registry, submit } = await prepare();
  const committer = new BatchCommitter(db);
  limit(db, 2);
  const batch = [
    submit({ signal: { client_signal_id: "small" } }),
    submit({ signal: { ...large, client_signal_id: "large" } }),
  ];
  expect(committer.commit(batch)).toEqual(
    batch.map(() => ({
      kind: "unavailable" as const,
      reason: "the disk is full",
      error: expect.stringContaining("SQLITE_FULL"),
      obstacle: "disk" as const,
    })),
  );
  expect(count(dataDir)).toBe(0);
  expect(db.inTransaction).toBe(false);
  limit(db, null);
  expect(committer.commit(batch).map(({ kind }) => kind)).toEqual(["stored", "stored"]);
  expect(count(dataDir)).toBe(2);
  expect((await registry.listKeys("alpha"))[0]?.last_used_at).toBe(1_000);
  expect(db.query("PRAGMA integrity_check").values()).toEqual([["ok"]]);
});

test("after a failure that leaves the disk's state unknown, nothing more is stored", async () => {
  const { db, dataDir, submit } = await prepare();
  // Neither a constraint nor a full disk: an unexpected failure.
  db.run(`CREATE TRIGGER failure BEFORE INSERT ON signals WHEN NEW.symbol = 'failure'
      BEGIN SELECT abs(-9223372036854775807 - 1); END`);
  const { writer, fatal, problems } = await startWriter(dataDir);
  const symbols = ["failure", ...Array.from({ length: 3_000 }, () => "later")];
  const results = await Promise.allSettled(
    symbols.map((symbol) => writer.append(submit({ signal: { symbol } }))),
  );
  for (const result of results) expect(result).toEqual({ status: "rejected", reason: unavailable });
  expect(await rejection(writer.append(submit()))).toEqual(unavailable);
  expect(fatal).toEqual([expect.stringContaining("integer overflow")]);
  expect(problems).toEqual([]);
  expect(writer.queue.outage?.reason).toContain("integer overflow");
  // With the lock, no transaction is open.
  await Bun.sleep(200);
  db.run("BEGIN IMMEDIATE");
  db.run("ROLLBACK");
  expect(count(dataDir)).toBe(0);
});

test("a slow commit is an outage until it ends", async () => {
  const { db, dataDir, submit } = await prepare();
  const { writer } = await startWriter(dataDir);
  db.run("BEGIN IMMEDIATE");
  const appended = writer.append(submit());
  expect(writer.queue.outage).toBeNull();
  while (writer.queue.outage === null) await Bun.sleep(50);
  expect(writer.queue.outage).toEqual({
    since: expect.any(Number),
    reason: expect.stringContaining("the disk does not answer"),
  });
  expect(writer.queue.outage.since).toBeLessThan(Date.now() - 3_900);
  db.run("ROLLBACK");
  expect((await appended).deduped).toBe(false);
  expect(writer.queue.outage).toBeNull();
});

test("the use of a key is not written while another has the lock, and signals do not wait behind it", async () => {
  const { dataDir, db, keyId } = await prepare();
  db.run("PRAGMA busy_timeout = 600000");
  const committer = new BatchCommitter(db);
  const other = openDatabase(dataDir, "command");
  onCleanup(() => other.close());
  other.run("BEGIN IMMEDIATE");
  committer.recordUse(keyId, 1_000);
  other.run("ROLLBACK");
  const lastUse = () => db.query("SELECT last_used_at FROM api_keys").get();
  expect(lastUse()).toEqual({ last_used_at: null });
  expect(db.query("PRAGMA busy_timeout").get()).toEqual({ timeout: 600_000 });
  committer.recordUse(keyId, 1_000);
  expect(lastUse()).toEqual({ last_used_at: 1_000 });
});

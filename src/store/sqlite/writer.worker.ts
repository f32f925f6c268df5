/**
 * The writer's thread: one connection, one batch after the other. See `writer.ts` for why it is a
 * thread of its own.
 */
import type { Database } from "bun:sqlite";
import type { Submission } from "../../domain/store.ts";
import { BatchCommitter } from "./batch.ts";
import { checkpoint, checkpointLongLog } from "./checkpoint.ts";
import { DedupeIndex } from "./dedupe/index.ts";
import { isTransient } from "./failures.ts";
import { reserveLogSpace } from "./log-space.ts";
import { openDatabase } from "./open.ts";
import { ThreadSelf } from "./thread.ts";
import type { FromWriter, ToWriter } from "./writer.ts";

declare const self: Worker;

/** Bounds the time of one transaction, and so how long a revoke waits for its lock. */
const BATCH_SIGNALS_MAX = 1_024;
/** 256 MiB: only reached where the checkpointer cannot keep up. */
const LOG_PAGES_MAX = 65_536;
/** 1 GiB: only reached where nobody does what `externalCheckpoints` promises. */
const EXTERNAL_LOG_PAGES_MAX = 262_144;

/** Between two parts of under a millisecond each. */
const WORK_PAUSE_MS = 4;
const WORK_RETRY_MS = 1_000;

let db: Database | null = null;
let externalCheckpoints = false;
let dedupe: DedupeIndex | null = null;
let committer: BatchCommitter | null = null;
let queue: Submission[] = [];
let workTimer: Timer | undefined;

const thread = new ThreadSelf<ToWriter, FromWriter>(self, (message) => {
  switch (message.type) {
    case "open":
      ({ externalCheckpoints } = message.where);
      open(message.where.dataDir);
      planWork();
      thread.post({ type: "ready" });
      break;
    case "append":
      // After every message that has come in by now: together they are the next batch.
      if (queue.length === 0) setImmediate(() => thread.run(commitQueue));
      queue.push(...message.submissions);
      break;
    case "checkpoint":
      if (db !== null) checkpoint(db, "PASSIVE");
      break;
    case "close":
      clearTimeout(workTimer);
      // Else the other program would find a log that has grown when it thought it had it all.
      if (!externalCheckpoints) ifPossible(() => dedupe?.cover());
      dedupe = null;
      if (db !== null && !externalCheckpoints) checkpoint(db, "TRUNCATE");
      db?.close();
      thread.post({ type: "closed" });
      break;
  }
});

function commitQueue(): void {
  if (committer === null || db === null) throw new Error("signals before the database was opened");
  const batch = queue.slice(0, BATCH_SIGNALS_MAX);
  queue = queue.slice(BATCH_SIGNALS_MAX);
  if (queue.length > 0) setImmediate(() => thread.run(commitQueue));
  thread.post({ type: "committed", outcomes: committer.commit(batch) });
  checkpointLongLog(db, externalCheckpoints ? EXTERNAL_LOG_PAGES_MAX : LOG_PAGES_MAX);
  planWork();
}

function open(dataDir: string): void {
  const database = openDatabase(dataDir, "writer", { externalCheckpoints });
  db = database;
  dedupe = new DedupeIndex(database);
  committer = new BatchCommitter(database, dedupe);
  // Another program goes by the length of the file. Before anyone is served, who would wait for it.
  if (!externalCheckpoints) ifPossible(() => reserveLogSpace(database));
}

/** What only saves time: where a lock or a full disk is in the way, it goes without. */
function ifPossible(attempt: () => void): void {
  try {
    attempt();
  } catch (error) {
    if (!isTransient(error)) throw error;
  }
}

/** The deduplication index is looked after in small parts, between batches. */
function planWork(pauseMs = WORK_PAUSE_MS): void {
  if (workTimer !== undefined || dedupe?.isWorkDue !== true) return;
  workTimer = setTimeout(() => thread.run(work), pauseMs);
}

function work(): void {
  workTimer = undefined;
  if (dedupe === null) return;
  try {
    thread.post({ type: "worked", pages: dedupe.work() });
    planWork();
  } catch (error) {
    // Signals are refused for the same reason, and it is they that are told of.
    if (!isTransient(error)) throw error;
    planWork(WORK_RETRY_MS);
  }
}

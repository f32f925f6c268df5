/**
 * The writer's thread: one connection, one batch after the other. See `writer.ts` for why it is a
 * thread of its own.
 */
import type { Database } from "bun:sqlite";
import type { Submission } from "../../domain/storage.ts";
import { BatchCommitter } from "./batch.ts";
import { checkpoint, logPages } from "./checkpoint.ts";
import { openDatabase } from "./open.ts";
import { ThreadSelf } from "./thread.ts";
import type { FromWriter, ToWriter } from "./writer.ts";

declare const self: Worker;

/** Bounds the time of one transaction, and so how long a revoke waits for its lock. */
const BATCH_SIGNALS_MAX = 1_024;
/** 256 MiB: only reached when the checkpointer cannot keep up. */
const LOG_PAGES_MAX = 65_536;
/** 1 GiB: only reached when the external program does not checkpoint. */
const EXTERNAL_LOG_PAGES_MAX = 262_144;

let db: Database | null = null;
let externalCheckpoints = false;
let committer: BatchCommitter | null = null;
let queue: Submission[] = [];

const thread = new ThreadSelf<ToWriter, FromWriter>(self, (message) => {
  switch (message.type) {
    case "open":
      ({ externalCheckpoints } = message.where);
      open(message.where.dataDir);
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
  const outcomes = committer.commit(batch);
  const { inLog, toCopy } = logPages(db);
  thread.post({ type: "committed", outcomes, logPagesToCopy: toCopy });
  if (inLog > (externalCheckpoints ? EXTERNAL_LOG_PAGES_MAX : LOG_PAGES_MAX)) {
    checkpoint(db, "PASSIVE");
  }
}

function open(dataDir: string): void {
  db = openDatabase(dataDir, "writer", { externalCheckpoints });
  committer = new BatchCommitter(db);
}

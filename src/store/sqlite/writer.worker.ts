/**
 * The writer's thread: one connection, one batch after the other. See `writer.ts` for why it is a
 * thread of its own.
 */
import type { Database } from "bun:sqlite";
import { BatchCommitter } from "./batch.ts";
import type { Submission } from "../../domain/store.ts";
import { openDatabase } from "./open.ts";
import type { FromWriter, ToWriter } from "./writer.ts";

declare const self: Worker;

/** Bounds the time of one transaction, and so how long a revoke waits for its lock. */
const BATCH_SIGNALS_MAX = 1_024;

let db: Database | null = null;
let committer: BatchCommitter | null = null;
let queue: Submission[] = [];
/** Nothing is stored any more: not even what is in the queue already. */
let isDead = false;

self.onmessage = ({ data }: MessageEvent<string>) => {
  guarded(() => receive(JSON.parse(data) as ToWriter));
};

function receive(message: ToWriter): void {
  switch (message.type) {
    case "open":
      db = openDatabase(message.dataDir, "writer");
      committer = new BatchCommitter(db);
      post({ type: "ready" });
      break;
    case "append":
      // After every message that has come in by now: together they are the next batch.
      if (queue.length === 0) setImmediate(() => guarded(commitQueue));
      queue.push(...message.submissions);
      break;
    case "close":
      db?.run("PRAGMA wal_checkpoint(TRUNCATE)");
      db?.close();
      post({ type: "closed" });
      break;
  }
}

function commitQueue(): void {
  if (committer === null) throw new Error("signals before the database was opened");
  const batch = queue.slice(0, BATCH_SIGNALS_MAX);
  queue = queue.slice(BATCH_SIGNALS_MAX);
  if (queue.length > 0) setImmediate(() => guarded(commitQueue));
  post({ type: "committed", outcomes: committer.commit(batch) });
}

/** Whatever goes wrong on this thread ends the process: nobody else would hear of it. */
function guarded(work: () => void): void {
  if (isDead) return;
  try {
    work();
  } catch (error) {
    isDead = true;
    post({ type: "fatal", reason: error instanceof Error ? error.message : String(error) });
  }
}

function post(message: FromWriter): void {
  self.postMessage(JSON.stringify(message));
}

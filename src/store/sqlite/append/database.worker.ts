/** The writer's and the checkpointer's thread: one connection, one message at a time. See `thread.ts`. */
import type { Database } from "bun:sqlite";
import type { Submission } from "../../../domain/storage/append.ts";
import { BatchCommitter } from "./batch.ts";
import { describeFailure, isTransient } from "../files/failures.ts";
import { openDatabase } from "../files/open.ts";
import { describeCutLog, isLogCut } from "../log/removed-log.ts";
import type { FromThread, ThreadRole, ToThread } from "./thread.ts";

declare const self: Worker;

/** Bounds the time of one transaction, and so how long a revoke waits for its lock. */
const BATCH_SIGNALS_MAX = 1_024;
/** 256 MiB: only reached when the checkpointer cannot keep up. */
const LOG_PAGES_MAX = 65_536;
/** 1 GiB: only reached when the external program does not checkpoint. */
const EXTERNAL_LOG_PAGES_MAX = 262_144;

let role: ThreadRole;
let db: Database;
let committer: BatchCommitter;
let externalCheckpoints = false;
let queue: Submission[] = [];
let isDead = false;

self.onmessage = ({ data }) => run(() => receive(JSON.parse(data) as ToThread));

/** After an error, ignores all further messages. */
function run(work: () => void): void {
  if (isDead) return;
  try {
    work();
  } catch (error) {
    isDead = true;
    post({ type: "fatal", reason: describeFailure(error) });
  }
}

function post(message: FromThread): void {
  self.postMessage(JSON.stringify(message));
}

function receive(message: ToThread): void {
  switch (message.type) {
    case "open":
      ({ role } = message);
      ({ externalCheckpoints } = message.where);
      db = openDatabase(message.where.dataDir, role, { externalCheckpoints });
      try {
        if (role === "writer") committer = new BatchCommitter(db);
      } catch (error) {
        db.close();
        throw error;
      }
      post({ type: "opened" });
      break;
    case "append":
      // Runs after the messages that have already arrived: they join the batch.
      if (queue.length === 0) setImmediate(() => run(commitQueue));
      queue.push(...message.submissions);
      break;
    case "used":
      committer.recordUse(message.keyId, message.at);
      break;
    case "probe":
      post({ type: "probed", refusal: committer.probe() });
      break;
    case "checkpoint":
      checkpoint("PASSIVE");
      // The second time for what the writer has added meanwhile.
      if (role === "checkpointer") checkpoint("PASSIVE");
      post({ type: "checkpointed" });
      break;
    case "close":
      if (role === "writer" && !externalCheckpoints) checkpoint("TRUNCATE");
      db.close();
      post({ type: "closed" });
      break;
  }
}

function commitQueue(): void {
  const batch = queue.slice(0, BATCH_SIGNALS_MAX);
  queue = queue.slice(BATCH_SIGNALS_MAX);
  if (queue.length > 0) setImmediate(() => run(commitQueue));
  const startedAt = performance.now();
  const outcomes = committer.commit(batch);
  const durationMs = performance.now() - startedAt;
  const { commitMs } = committer;
  const { inLog, toCopy } = logPages();
  post({ type: "committed", outcomes, durationMs, commitMs, logPagesToCopy: toCopy });
  if (inLog > (externalCheckpoints ? EXTERNAL_LOG_PAGES_MAX : LOG_PAGES_MAX)) {
    checkpoint("PASSIVE");
  }
}

/**
 * Copies the log into the database. PASSIVE blocks neither readers nor the writer; once the whole log is
 * copied, the next commit starts it again. TRUNCATE waits for readers and leaves an empty log. On a full
 * disk the log stays for a later checkpoint; any other failure is thrown.
 */
function checkpoint(mode: "PASSIVE" | "TRUNCATE"): void {
  // It would copy the zeros of the missing part into the database.
  if (isLogCut(db)) throw new Error(describeCutLog(db));
  try {
    db.run(`PRAGMA wal_checkpoint(${mode})`);
  } catch (error) {
    if (!isTransient(error)) throw error;
  }
}

/** Returns the pages (4 KiB each) in the log, and how many of them are not in the database yet. */
function logPages(): { inLog: number; toCopy: number } {
  const state = db
    .query<{ log: number; checkpointed: number }, []>("PRAGMA wal_checkpoint(NOOP)")
    .get();
  const { log: inLog = 0, checkpointed = 0 } = state ?? {};
  return { inLog, toCopy: inLog - checkpointed };
}

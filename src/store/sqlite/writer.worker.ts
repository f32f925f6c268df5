/**
 * The writer's thread: one connection, one batch after the other. See `writer.ts` for why it is a
 * thread of its own.
 */
import type { Database } from "bun:sqlite";
import { BatchCommitter } from "./batch.ts";
import { openDatabase } from "./open.ts";
import type { FromWriter, ToWriter } from "./writer.ts";

declare const self: Worker;

let db: Database | null = null;
let committer: BatchCommitter | null = null;

self.onmessage = ({ data }: MessageEvent<ToWriter>) => {
  try {
    self.postMessage(handle(data));
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    self.postMessage({ type: "fatal", reason } satisfies FromWriter);
  }
};

function handle(message: ToWriter): FromWriter {
  switch (message.type) {
    case "open":
      db = openDatabase(message.dataDir, "writer");
      committer = new BatchCommitter(db);
      return { type: "ready" };
    case "batch":
      if (committer === null) throw new Error("a batch before the database was opened");
      return { type: "committed", outcomes: committer.commit(message.submissions) };
    case "close":
      db?.run("PRAGMA wal_checkpoint(TRUNCATE)");
      db?.close();
      return { type: "closed" };
  }
}

/** The checkpointer's thread: see `checkpointer.ts`. */
import type { Database } from "bun:sqlite";
import { checkpoint } from "./checkpoint.ts";
import type { FromCheckpointer, ToCheckpointer } from "./checkpointer.ts";
import { openDatabase } from "./open.ts";
import { ThreadSelf } from "./thread.ts";

declare const self: Worker;

let db: Database | null = null;

const thread = new ThreadSelf<ToCheckpointer, FromCheckpointer>(self, (message) => {
  switch (message.type) {
    case "open":
      db = openDatabase(message.where.dataDir, "checkpointer");
      thread.post({ type: "ready" });
      break;
    case "checkpoint":
      if (db !== null) checkpoint(db, "PASSIVE");
      thread.post({ type: "copied" });
      break;
    case "close":
      db?.close();
      thread.post({ type: "closed" });
      break;
  }
});

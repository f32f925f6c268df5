/** Activity: the tables of every server's requests. */
import type { ActivityBatch } from "../../domain/activity/activity.ts";
import type { Activity } from "../../domain/storage/activity.ts";
import { readActivity } from "../records/activity/reading.ts";
import { addBatch, addRows, forgetSent, tables } from "../records/activity/writing.ts";
import { silentDesks } from "../records/desk-rows.ts";
import type { Sql } from "../records/sql.ts";
import { explain, isTransient } from "./failures.ts";

/** Batches that wait while the database is away: one per second. */
const WAITING_MAX = 600;
/** Of these, the latest still have what requests sent: each may have megabytes. */
const WITH_SENT_MAX = 10;

export function activityIn(sql: Sql): Activity {
  const waiting: ActivityBatch[] = [];
  return {
    ...readActivity(sql),

    forgetSent: (deskId) => sql.transaction((tx) => forgetSent(tx, "", [deskId])),

    async write(batch) {
      if (Object.values(batch).some((part) => part.length > 0)) waiting.push(batch);
      if (waiting.length > WAITING_MAX) waiting.shift();
      const old = waiting.length - 1 - WITH_SENT_MAX;
      if (old >= 0) waiting[old] = { ...(waiting[old] as ActivityBatch), bodies: [], values: [] };
      try {
        for (let [next] = waiting; next !== undefined; [next] = waiting) {
          await save(sql, next);
          waiting.shift();
        }
        return null;
      } catch (error) {
        if (isTransient(error)) return explain(error);
        // It would fail again, and hold up those behind it.
        waiting.shift();
        throw error;
      }
    },
  };
}

/** By tables of this connection alone, which say what the batch has touched. */
function save(sql: Sql, batch: ActivityBatch): Promise<void> {
  return sql.transaction(async (tx) => {
    for (const table of tables) {
      await tx.run(
        `CREATE TEMP TABLE IF NOT EXISTS touched_${table} (LIKE ${table} INCLUDING ALL) ON COMMIT DELETE ROWS`,
      );
    }
    // With the lock: a desk that keeps nothing since then waits with what it deletes.
    const silent = await silentDesks(tx);
    await addBatch(tx, "touched_", batch, silent);
    await forgetSent(tx, "", silent);
    await addRows(tx, "", "touched_");
  });
}

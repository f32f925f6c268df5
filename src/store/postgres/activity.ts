/** Activity: the tables of every server's requests. */
import type { ActivityBatch } from "../../domain/activity/activity.ts";
import type { Activity } from "../../domain/storage/activity.ts";
import { readActivity } from "../records/activity/reading.ts";
import { addBatch, addRows, tables } from "../records/activity/writing.ts";
import type { Sql } from "../records/sql.ts";
import { explain, isTransient } from "./failures.ts";

/** Batches that wait while the database is away: one per second. */
const WAITING_MAX = 600;

export function activityIn(sql: Sql): Activity {
  const waiting: ActivityBatch[] = [];
  return {
    ...readActivity(sql),

    async write(batch) {
      if (batch.minutes.length + batch.repeats.length > 0) waiting.push(batch);
      if (waiting.length > WAITING_MAX) waiting.shift();
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
    await addBatch(tx, "touched_", batch);
    await addRows(tx, "", "touched_");
  });
}

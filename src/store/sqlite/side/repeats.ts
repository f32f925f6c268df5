/** Signals that were sent more than once: the table `repeats` of `activity.sql`. */
import type { Database } from "bun:sqlite";
import {
  type ActivityBatch,
  REPEATED_SIGNALS_KEPT,
  type Repeats,
} from "../../../domain/activity/activity.ts";
import { type ActivitySchema, merging } from "./unwritten.ts";

type Row = Omit<Repeats, "differs"> & { readonly differs: string };

export function readRepeats(db: Database, deskId: number, signalId: string): Repeats | null {
  const row = db
    .query<Row, [number, string]>(
      `SELECT sum(duplicates) AS duplicates, sum(differing) AS differing, max(last_at) AS lastAt,
         json_group_array(json(differs)) AS differs
       FROM repeats WHERE desk_id = ? AND signal_id = ? GROUP BY signal_id`,
    )
    .get(deskId, signalId);
  if (row === null) return null;
  const differs = new Set((JSON.parse(row.differs) as string[][]).flat());
  return { ...row, differs: [...differs] };
}

export function addRepeats(db: Database, repeats: ActivityBatch["repeats"]): void {
  const add = db.query(
    `INSERT INTO unwritten.repeats (desk_id, signal_id, duplicates, differing, differs, last_at)
     VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET ${merging.repeats}`,
  );
  for (const { deskId, signalId, duplicates, differing, differs, lastAt } of repeats) {
    add.run(deskId, signalId, duplicates, differing, JSON.stringify(differs), lastAt);
  }
}

export function dropOldRepeats(db: Database, schema: ActivitySchema, deskId: number): void {
  db.query(
    `DELETE FROM ${schema}.repeats WHERE desk_id = $deskId AND signal_id <=
       (SELECT signal_id FROM ${schema}.repeats WHERE desk_id = $deskId
        ORDER BY signal_id DESC LIMIT 1 OFFSET $kept)`,
  ).run({ deskId, kept: REPEATED_SIGNALS_KEPT });
}

/** Duplicates that differed from their signal: the table `differing` of `activity.sql`. */
import type { Database } from "bun:sqlite";
import {
  type ActivityBatch,
  type Differing,
  DIFFERING_KEPT,
  type DifferingQuery,
  type DifferingTotal,
} from "../../../domain/activity/activity.ts";
import { type ActivitySchema, merging } from "./unwritten.ts";

type Row = Omit<Differing, "fields"> & { readonly fields: string };

export function readDiffering(
  db: Database,
  { deskId, before, limit }: DifferingQuery,
): Differing[] {
  return db
    .query<Row, Record<string, string | number | null>>(
      `SELECT signal_id AS signalId, key_id AS keyId, sum(count) AS count, max(last_at) AS lastAt,
         json_group_array(json(fields)) AS fields
       FROM differing WHERE desk_id = $deskId GROUP BY signal_id, key_id
       HAVING $at IS NULL OR (max(last_at), signal_id, key_id) < ($at, $signal, $key)
       ORDER BY max(last_at) DESC, signal_id DESC, key_id DESC LIMIT $limit`,
    )
    .all({
      deskId,
      at: before?.lastAt ?? null,
      signal: before?.signalId ?? null,
      key: before?.keyId ?? null,
      limit,
    })
    .map((row) => ({
      ...row,
      fields: [...new Set((JSON.parse(row.fields) as string[][]).flat())],
    }));
}

export function sumDiffering(db: Database, deskId: number, from: number): DifferingTotal | null {
  return db
    .query<DifferingTotal, [number, number]>(
      `SELECT sum(count) AS count, max(last_at) AS lastAt FROM
         (SELECT sum(count) AS count, max(last_at) AS last_at FROM differing
          WHERE desk_id = ? GROUP BY signal_id, key_id HAVING max(last_at) >= ?)
       HAVING sum(count) > 0`,
    )
    .get(deskId, from);
}

export function addDiffering(db: Database, differing: ActivityBatch["differing"]): void {
  const add = db.query(
    `INSERT INTO unwritten.differing (desk_id, signal_id, key_id, count, fields, last_at)
     VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET ${merging.differing}`,
  );
  for (const { deskId, signalId, keyId, count, fields, lastAt } of differing) {
    add.run(deskId, signalId, keyId, count, JSON.stringify(fields), lastAt);
  }
}

export function dropOldDiffering(db: Database, schema: ActivitySchema, deskId: number): void {
  db.query(
    `DELETE FROM ${schema}.differing WHERE desk_id = $deskId AND (signal_id, key_id) NOT IN
       (SELECT signal_id, key_id FROM ${schema}.differing WHERE desk_id = $deskId
        ORDER BY last_at DESC LIMIT $kept)`,
  ).run({ deskId, kept: DIFFERING_KEPT });
}

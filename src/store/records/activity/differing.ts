/** Duplicates that differed from their signal: the table `differing`. */
import {
  type ActivityBatch,
  type Differing,
  DIFFERING_KEPT,
  type DifferingQuery,
  type DifferingTotal,
} from "../../../domain/activity/activity.ts";
import type { Reader, Tx } from "../sql.ts";
import { bitsOf, eitherOf, fieldsOf } from "./fields.ts";
import { merging } from "./merging.ts";

type Row = Omit<Differing, "fields"> & { readonly fields: number };

export async function readDiffering(
  sql: Reader,
  { deskId, before, limit }: DifferingQuery,
): Promise<Differing[]> {
  const [isBefore, values] =
    before === null
      ? ["", []]
      : [
          "HAVING (max(last_at), signal_id, key_id) < ($3, $4, $5)",
          [before.lastAt, before.signalId, before.keyId],
        ];
  const rows = await sql.all<Row>(
    `SELECT signal_id AS "signalId", key_id AS "keyId", sum(count) AS count, max(last_at) AS "lastAt",
       ${eitherOf("fields")} AS fields
     FROM differing WHERE desk_id = $1 GROUP BY signal_id, key_id ${isBefore}
     ORDER BY max(last_at) DESC, signal_id DESC, key_id DESC LIMIT $2`,
    deskId,
    limit,
    ...values,
  );
  return rows.map((row) => ({ ...row, fields: fieldsOf(row.fields) }));
}

export function sumDiffering(
  sql: Reader,
  deskId: number,
  from: number,
): Promise<DifferingTotal | null> {
  return sql.get<DifferingTotal>(
    `SELECT sum(count) AS count, max(last_at) AS "lastAt" FROM
       (SELECT sum(count) AS count, max(last_at) AS last_at FROM differing
        WHERE desk_id = $1 GROUP BY signal_id, key_id HAVING max(last_at) >= $2) AS recent
     HAVING sum(count) > 0`,
    deskId,
    from,
  );
}

export async function addDiffering(
  tx: Tx,
  into: string,
  { deskId, signalId, keyId, count, fields, lastAt }: ActivityBatch["differing"][number],
): Promise<void> {
  await tx.run(
    `INSERT INTO ${into}differing AS kept (desk_id, signal_id, key_id, count, fields, last_at)
     VALUES ($1, $2, $3, $4, $5, $6) ${merging.differing}`,
    deskId,
    signalId,
    keyId,
    count,
    bitsOf(fields),
    lastAt,
  );
}

export async function dropOldDiffering(tx: Tx, from: string, deskId: number): Promise<void> {
  await tx.run(
    `DELETE FROM ${from}differing WHERE desk_id = $1 AND (signal_id, key_id) NOT IN
       (SELECT signal_id, key_id FROM ${from}differing WHERE desk_id = $1
        ORDER BY last_at DESC LIMIT $2)`,
    deskId,
    DIFFERING_KEPT,
  );
}

/** Signals that were sent more than once: the table `repeats`. */
import {
  type ActivityBatch,
  REPEATED_SIGNALS_KEPT,
  type Repeats,
} from "../../../domain/activity/activity.ts";
import type { Reader, Tx } from "../sql.ts";
import { bitsOf, eitherOf, fieldsOf } from "./fields.ts";
import { merging } from "./merging.ts";

type Row = Omit<Repeats, "differs"> & { readonly differs: number };

export async function readRepeats(
  sql: Reader,
  deskId: number,
  signalId: string,
): Promise<Repeats | null> {
  const row = await sql.get<Row>(
    `SELECT sum(duplicates) AS duplicates, sum(differing) AS differing, max(last_at) AS "lastAt",
       ${eitherOf("differs")} AS differs
     FROM repeats WHERE desk_id = $1 AND signal_id = $2 GROUP BY signal_id`,
    deskId,
    signalId,
  );
  return row && { ...row, differs: fieldsOf(row.differs) };
}

export async function addRepeats(
  tx: Tx,
  into: string,
  { deskId, signalId, duplicates, differing, differs, lastAt }: ActivityBatch["repeats"][number],
): Promise<void> {
  await tx.run(
    `INSERT INTO ${into}repeats AS kept (desk_id, signal_id, duplicates, differing, differs, last_at)
     VALUES ($1, $2, $3, $4, $5, $6) ${merging.repeats}`,
    deskId,
    signalId,
    duplicates,
    differing,
    bitsOf(differs),
    lastAt,
  );
}

export async function dropOldRepeats(tx: Tx, from: string, deskId: number): Promise<void> {
  await tx.run(
    `DELETE FROM ${from}repeats WHERE desk_id = $1 AND signal_id <=
       (SELECT signal_id FROM ${from}repeats WHERE desk_id = $1
        ORDER BY signal_id DESC LIMIT 1 OFFSET $2)`,
    deskId,
    REPEATED_SIGNALS_KEPT,
  );
}

/** Rejected requests by reason: the tables `reject_reasons`, `rejects` and `reject_counts`. */
import {
  activityWidths,
  type KeyRejects,
  REJECT_HOURS_KEPT,
  REJECT_MINUTES_KEPT,
  REJECT_REASONS_KEPT,
  REJECT_REASONS_PER_KEY_KEPT,
  type RejectedRequest,
  type RejectQuery,
  type Rejects,
  REQUESTS_PER_REASON_KEPT,
  startOfBucket,
  textOfReason,
} from "../../../domain/activity/activity.ts";
import type { FieldReasons } from "../../../domain/errors.ts";
import { HOUR_MS, MINUTE_MS } from "../../../lib/text/time.ts";
import { keysOf } from "../dialect.ts";
import type { Reader, Tx, Value } from "../sql.ts";
import { merging } from "./merging.ts";

const countWidths = [
  { ms: MINUTE_MS, kept: REJECT_MINUTES_KEPT },
  { ms: HOUR_MS, kept: REJECT_HOURS_KEPT },
] as const;

type Row = Omit<Rejects, "fields" | "keyIds" | "latest"> & {
  readonly fields: string | null;
  readonly keyIds: string;
};

export async function readRejects(sql: Reader, query: RejectQuery): Promise<Rejects[]> {
  const { deskId, keyId = null, from = null, fromWidth = "hour", requestsMax } = query;
  const { status = null, field = null, reason = null, before = null, limit } = query;
  const values: Value[] = [deskId, limit];
  const given = (value: Value): string => `$${values.push(value)}`;
  const where = ["desk_id = $1"];
  if (keyId !== null) where.push(`key_id = ${given(keyId)}`);
  if (status !== null) where.push(`status = ${given(status)}`);
  if (reason !== null) where.push(`reason_id = ${given(reason)}`);
  if (field !== null) where.push(`${given(field)} IN (${keysOf("fields")})`);
  const having = ["count(*) > 0"];
  let counted = "count";
  if (from !== null) {
    const { ms } = activityWidths[fromWidth];
    const start = given(startOfBucket(from, ms));
    having.push(`max(last_at) >= ${start}`);
    counted = `(SELECT sum(counts.count) FROM reject_counts AS counts
      WHERE counts.desk_id = $1 AND counts.reason_id = reasons.reason_id
        AND counts.key_id = reasons.key_id AND counts.width_ms = ${given(ms)} AND counts.start >= ${start})`;
  }
  if (before !== null) having.push(`max(latest_id) < ${given(before)}`);
  const rows = await sql.all<Row>(
    `SELECT reason_id AS id, max(status) AS status, max(error) AS error, max(fields) AS fields,
       max(more_fields) AS "moreFields", min(first_at) AS "firstAt", max(last_at) AS "lastAt",
       string_agg(key_id, ',' ORDER BY latest_id DESC) AS "keyIds", coalesce(sum(${counted}), 0) AS count
     FROM
       (SELECT reason_id, key_id, max(status) AS status, max(error) AS error, max(fields) AS fields,
          max(more_fields) AS more_fields, sum(count) AS count,
          min(first_at) AS first_at, max(last_at) AS last_at, max(latest_id) AS latest_id
        FROM reject_reasons WHERE ${where.join(" AND ")} GROUP BY reason_id, key_id) AS reasons
     GROUP BY reason_id HAVING ${having.join(" AND ")}
     ORDER BY max(latest_id) DESC LIMIT $2`,
    ...values,
  );
  return Promise.all(
    rows.map(async (row) => ({
      ...row,
      fields: row.fields === null ? null : (JSON.parse(row.fields) as FieldReasons),
      keyIds: row.keyIds.split(","),
      latest: await latestOf(sql, { deskId, keyId, reason: row.id, limit: requestsMax }),
    })),
  );
}

function latestOf(
  sql: Reader,
  {
    deskId,
    keyId,
    reason,
    limit,
  }: { deskId: number; keyId: string | null; reason: string; limit: number },
): Promise<RejectedRequest[]> {
  const [ofKey, values] = keyId === null ? ["", []] : ["AND key_id = $4", [keyId]];
  return sql.all<RejectedRequest>(
    `SELECT request_id, key_id, at, message FROM rejects
     WHERE desk_id = $1 AND reason_id = $2 ${ofKey} ORDER BY request_id DESC LIMIT $3`,
    deskId,
    reason,
    limit,
    ...values,
  );
}

export async function addRejects(
  tx: Tx,
  into: string,
  { reason, latest, ...rejects }: KeyRejects,
): Promise<void> {
  const { deskId, keyId, count, firstAt, lastAt } = rejects;
  const owner = [deskId, idOf(textOfReason(reason)), keyId] as const;
  await tx.run(
    `INSERT INTO ${into}reject_reasons AS kept (desk_id, reason_id, key_id, status, error, fields,
       more_fields, count, first_at, last_at, latest_id)
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11) ${merging.reject_reasons}`,
    ...owner,
    reason.status,
    reason.error,
    reason.fields === null ? null : JSON.stringify(reason.fields),
    reason.moreFields,
    count,
    firstAt,
    lastAt,
    latest.reduce((id, { request_id }) => (request_id > id ? request_id : id), ""),
  );
  for (const { request_id, at, message } of latest) {
    await tx.run(
      `INSERT INTO ${into}rejects AS kept (desk_id, reason_id, key_id, request_id, at, message)
       VALUES ($1, $2, $3, $4, $5, $6) ${merging.rejects}`,
      ...owner,
      request_id,
      at,
      message,
    );
  }
  for (const { ms } of countWidths) {
    await tx.run(
      `INSERT INTO ${into}reject_counts AS kept (desk_id, reason_id, key_id, width_ms, start, count)
       VALUES ($1, $2, $3, $4, $5, $6) ${merging.reject_counts}`,
      ...owner,
      ms,
      startOfBucket(lastAt, ms),
      count,
    );
  }
}

interface Touched {
  readonly deskId: number;
  readonly reasonId: string;
  readonly keyId: string;
  readonly lastAt: number;
}

export function touchedRejects(sql: Reader, schema: string): Promise<Touched[]> {
  return sql.all<Touched>(
    `SELECT desk_id AS "deskId", reason_id AS "reasonId", key_id AS "keyId", last_at AS "lastAt"
     FROM ${schema}reject_reasons`,
  );
}

export async function dropOldRejects(
  tx: Tx,
  from: string,
  reasons: readonly Touched[],
): Promise<void> {
  const ofReason = "(desk_id, reason_id, key_id) = ($1, $2, $3)";
  for (const { deskId, reasonId, keyId, lastAt } of reasons) {
    await tx.run(
      `DELETE FROM ${from}rejects WHERE ${ofReason} AND request_id <=
         (SELECT request_id FROM ${from}rejects WHERE ${ofReason}
          ORDER BY request_id DESC LIMIT 1 OFFSET $4)`,
      deskId,
      reasonId,
      keyId,
      REQUESTS_PER_REASON_KEPT,
    );
    for (const { ms, kept } of countWidths) {
      await tx.run(
        `DELETE FROM ${from}reject_counts WHERE ${ofReason} AND width_ms = $4 AND start <= $5`,
        deskId,
        reasonId,
        keyId,
        ms,
        startOfBucket(lastAt, ms) - kept * ms,
      );
    }
  }
  const desks = new Set(reasons.map(({ deskId }) => deskId));
  for (const deskId of desks) await dropOldReasons(tx, from, deskId);
}

/** Their requests and counts go with them. */
async function dropOldReasons(tx: Tx, from: string, deskId: number): Promise<void> {
  await tx.run(
    `DELETE FROM ${from}reject_reasons WHERE desk_id = $1 AND (reason_id, key_id) NOT IN
       (SELECT reason_id, key_id FROM
          (SELECT reason_id, key_id, latest_id,
             row_number() OVER (PARTITION BY key_id ORDER BY latest_id DESC) AS nth
           FROM ${from}reject_reasons WHERE desk_id = $1) AS ranked
        WHERE nth <= $2 ORDER BY latest_id DESC LIMIT $3)`,
    deskId,
    REJECT_REASONS_PER_KEY_KEPT,
    REJECT_REASONS_KEPT,
  );
}

function idOf(reason: string): string {
  return new Bun.CryptoHasher("sha256").update(reason).digest("hex").slice(0, 16);
}

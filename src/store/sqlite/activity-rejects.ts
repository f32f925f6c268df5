/** Rejected requests by reason: `reject_reasons`, `rejects` and `reject_hours` of `activity.sql`. */
import type { Database } from "bun:sqlite";
import {
  activityWidths,
  type KeyRejects,
  REJECT_HOURS_KEPT,
  REJECT_REASONS_KEPT,
  REJECT_REASONS_PER_KEY_KEPT,
  type RejectedRequest,
  type RejectQuery,
  type Rejects,
  REQUESTS_PER_REASON_KEPT,
  startOfBucket,
  textOfReason,
} from "../../domain/activity.ts";
import type { FieldReasons } from "../../domain/errors.ts";

const HOUR_MS = activityWidths.hour.ms;

type Values = Record<string, string | number | null>;
type Row = Omit<Rejects, "fields" | "keyIds" | "latest"> & {
  fields: string | null;
  keyIds: string;
};

export function readRejects(db: Database, query: RejectQuery): Rejects[] {
  const { deskId, keyId = null, from = null, requestsMax } = query;
  const { status = null, field = null, reason = null, before = null, limit } = query;
  const hour = from === null ? null : startOfBucket(from, HOUR_MS);
  const rows = db
    .query<Row, Values>(
      `SELECT reason_id AS id, status, error, fields, more_fields AS moreFields,
         min(first_at) AS firstAt, max(last_at) AS lastAt,
         json_group_array(key_id ORDER BY latest_id DESC) AS keyIds,
         CAST(total(CASE WHEN $hour IS NULL THEN count ELSE
           (SELECT sum(hours.count) FROM reject_hours AS hours
            WHERE hours.desk_id = reasons.desk_id AND hours.reason_id = reasons.reason_id
              AND hours.key_id = reasons.key_id AND hours.start >= $hour) END) AS INTEGER) AS count
       FROM reject_reasons AS reasons
       WHERE desk_id = $deskId AND ($keyId IS NULL OR key_id = $keyId)
         AND ($status IS NULL OR status = $status) AND ($reason IS NULL OR reason_id = $reason)
         AND ($field IS NULL OR $field IN (SELECT key FROM json_each(fields)))
       GROUP BY reason_id
       HAVING ($hour IS NULL OR max(last_at) >= $hour) AND ($before IS NULL OR max(latest_id) < $before)
       ORDER BY max(latest_id) DESC LIMIT $limit`,
    )
    .all({ deskId, keyId, status, field, reason, hour, before, limit });
  return rows.map((row) => ({
    ...row,
    fields: row.fields === null ? null : (JSON.parse(row.fields) as FieldReasons),
    keyIds: JSON.parse(row.keyIds) as string[],
    latest: latestOf(db, { deskId, keyId, reason: row.id, limit: requestsMax }),
  }));
}

function latestOf(db: Database, values: Values): RejectedRequest[] {
  return db
    .query<RejectedRequest, Values>(
      `SELECT request_id, key_id, at, message FROM rejects
       WHERE desk_id = $deskId AND reason_id = $reason AND ($keyId IS NULL OR key_id = $keyId)
       ORDER BY request_id DESC LIMIT $limit`,
    )
    .all(values);
}

export function writeRejects(db: Database, rejects: readonly KeyRejects[]): void {
  for (const one of rejects) addRejects(db, one);
  for (const deskId of new Set(rejects.map((one) => one.deskId))) dropOldReasons(db, deskId);
}

function addRejects(db: Database, { reason, latest, ...rejects }: KeyRejects): void {
  const { deskId, keyId, ...sums } = rejects;
  const owner = { deskId, reasonId: idOf(textOfReason(reason)), keyId };
  db.query(
    `INSERT INTO reject_reasons (desk_id, reason_id, key_id, status, error, fields, more_fields,
       count, first_at, last_at, latest_id)
     VALUES ($deskId, $reasonId, $keyId, $status, $error, $fields, $moreFields,
       $count, $firstAt, $lastAt, $latestId)
     ON CONFLICT DO UPDATE SET count = count + excluded.count,
       first_at = min(first_at, excluded.first_at), last_at = max(last_at, excluded.last_at),
       latest_id = max(latest_id, excluded.latest_id)`,
  ).run({
    ...owner,
    ...reason,
    fields: reason.fields === null ? null : JSON.stringify(reason.fields),
    ...sums,
    latestId: latest.reduce((id, { request_id }) => (request_id > id ? request_id : id), ""),
  });
  const add = db.query(
    `INSERT INTO rejects (desk_id, reason_id, key_id, request_id, at, message)
     VALUES ($deskId, $reasonId, $keyId, $request_id, $at, $message) ON CONFLICT DO NOTHING`,
  );
  for (const { request_id, at, message } of latest) add.run({ ...owner, request_id, at, message });
  db.query(
    `DELETE FROM rejects WHERE (desk_id, reason_id, key_id) = ($deskId, $reasonId, $keyId) AND request_id <=
       (SELECT request_id FROM rejects WHERE (desk_id, reason_id, key_id) = ($deskId, $reasonId, $keyId)
        ORDER BY request_id DESC LIMIT 1 OFFSET $kept)`,
  ).run({ ...owner, kept: REQUESTS_PER_REASON_KEPT });
  addToHour(db, owner, sums.lastAt, sums.count);
}

function addToHour(db: Database, owner: Values, at: number, count: number): void {
  const start = startOfBucket(at, HOUR_MS);
  db.query(
    `INSERT INTO reject_hours (desk_id, reason_id, key_id, start, count)
     VALUES ($deskId, $reasonId, $keyId, $start, $count)
     ON CONFLICT DO UPDATE SET count = count + excluded.count`,
  ).run({ ...owner, start, count });
  db.query(
    `DELETE FROM reject_hours
     WHERE (desk_id, reason_id, key_id) = ($deskId, $reasonId, $keyId) AND start <= $end`,
  ).run({ ...owner, end: start - REJECT_HOURS_KEPT * HOUR_MS });
}

/** Their requests and hours go with them. */
function dropOldReasons(db: Database, deskId: number): void {
  db.query(
    `DELETE FROM reject_reasons WHERE desk_id = $deskId AND (reason_id, key_id) NOT IN
       (SELECT reason_id, key_id FROM
          (SELECT reason_id, key_id, latest_id,
             row_number() OVER (PARTITION BY key_id ORDER BY latest_id DESC) AS nth
           FROM reject_reasons WHERE desk_id = $deskId)
        WHERE nth <= $perKey ORDER BY latest_id DESC LIMIT $kept)`,
  ).run({ deskId, perKey: REJECT_REASONS_PER_KEY_KEPT, kept: REJECT_REASONS_KEPT });
}

function idOf(reason: string): string {
  return new Bun.CryptoHasher("sha256").update(reason).digest("hex").slice(0, 16);
}

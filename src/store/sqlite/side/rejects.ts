/** Rejected requests by reason: `reject_reasons`, `rejects` and `reject_counts` of `activity.sql`. */
import type { Database } from "bun:sqlite";
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
import { type ActivitySchema, merging } from "./unwritten.ts";

const countWidths = [
  { ms: MINUTE_MS, kept: REJECT_MINUTES_KEPT },
  { ms: HOUR_MS, kept: REJECT_HOURS_KEPT },
] as const;

type Values = Record<string, string | number | null>;
type Row = Omit<Rejects, "fields" | "keyIds" | "latest"> & {
  fields: string | null;
  keyIds: string;
};

export function readRejects(db: Database, query: RejectQuery): Rejects[] {
  const { deskId, keyId = null, from = null, fromWidth = "hour", requestsMax } = query;
  const { status = null, field = null, reason = null, before = null, limit } = query;
  const { ms } = activityWidths[fromWidth];
  const start = from === null ? null : startOfBucket(from, ms);
  const rows = db
    .query<Row, Values>(
      `SELECT reason_id AS id, status, error, fields, more_fields AS moreFields,
         min(first_at) AS firstAt, max(last_at) AS lastAt,
         json_group_array(key_id ORDER BY latest_id DESC) AS keyIds,
         CAST(total(CASE WHEN $start IS NULL THEN count ELSE
           (SELECT sum(counts.count) FROM reject_counts AS counts
            WHERE counts.desk_id = reasons.desk_id AND counts.reason_id = reasons.reason_id
              AND counts.key_id = reasons.key_id AND width_ms = $ms AND start >= $start)
           END) AS INTEGER) AS count
       FROM
         (SELECT desk_id, reason_id, key_id, status, error, fields, more_fields, sum(count) AS count,
            min(first_at) AS first_at, max(last_at) AS last_at, max(latest_id) AS latest_id
          FROM reject_reasons WHERE desk_id = $deskId GROUP BY reason_id, key_id) AS reasons
       WHERE desk_id = $deskId AND ($keyId IS NULL OR key_id = $keyId)
         AND ($status IS NULL OR status = $status) AND ($reason IS NULL OR reason_id = $reason)
         AND ($field IS NULL OR $field IN (SELECT key FROM json_each(fields)))
       GROUP BY reason_id
       HAVING ($start IS NULL OR max(last_at) >= $start) AND ($before IS NULL OR max(latest_id) < $before)
       ORDER BY max(latest_id) DESC LIMIT $limit`,
    )
    .all({ deskId, keyId, status, field, reason, ms, start, before, limit });
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

export function addRejects(db: Database, rejects: readonly KeyRejects[]): void {
  for (const one of rejects) addRejectsOf(db, one);
}

function addRejectsOf(db: Database, { reason, latest, ...rejects }: KeyRejects): void {
  const { deskId, keyId, ...sums } = rejects;
  const owner = { deskId, reasonId: idOf(textOfReason(reason)), keyId };
  db.query(
    `INSERT INTO unwritten.reject_reasons (desk_id, reason_id, key_id, status, error, fields, more_fields,
       count, first_at, last_at, latest_id)
     VALUES ($deskId, $reasonId, $keyId, $status, $error, $fields, $moreFields,
       $count, $firstAt, $lastAt, $latestId)
     ON CONFLICT DO UPDATE SET ${merging.reject_reasons}`,
  ).run({
    ...owner,
    ...reason,
    fields: reason.fields === null ? null : JSON.stringify(reason.fields),
    ...sums,
    latestId: latest.reduce((id, { request_id }) => (request_id > id ? request_id : id), ""),
  });
  const add = db.query(
    `INSERT INTO unwritten.rejects (desk_id, reason_id, key_id, request_id, at, message)
     VALUES ($deskId, $reasonId, $keyId, $request_id, $at, $message) ON CONFLICT DO NOTHING`,
  );
  for (const { request_id, at, message } of latest) add.run({ ...owner, request_id, at, message });
  const count = db.query(
    `INSERT INTO unwritten.reject_counts (desk_id, reason_id, key_id, width_ms, start, count)
     VALUES ($deskId, $reasonId, $keyId, $ms, $start, $count)
     ON CONFLICT DO UPDATE SET ${merging.reject_counts}`,
  );
  for (const { ms } of countWidths) {
    count.run({ ...owner, ms, start: startOfBucket(sums.lastAt, ms), count: sums.count });
  }
}

interface Touched {
  readonly deskId: number;
  readonly reasonId: string;
  readonly keyId: string;
  readonly lastAt: number;
}

/** Returns what {@link addRejects} has added since it was last moved to the file. */
export function touchedRejects(db: Database): Touched[] {
  return db
    .query<Touched, []>(
      `SELECT desk_id AS deskId, reason_id AS reasonId, key_id AS keyId, last_at AS lastAt
       FROM unwritten.reject_reasons`,
    )
    .all();
}

export function dropOldRejects(
  db: Database,
  schema: ActivitySchema,
  reasons: readonly Touched[],
): void {
  const dropRequests = db.query(
    `DELETE FROM ${schema}.rejects
     WHERE (desk_id, reason_id, key_id) = ($deskId, $reasonId, $keyId) AND request_id <=
       (SELECT request_id FROM ${schema}.rejects
        WHERE (desk_id, reason_id, key_id) = ($deskId, $reasonId, $keyId)
        ORDER BY request_id DESC LIMIT 1 OFFSET $kept)`,
  );
  const dropCounts = db.query(
    `DELETE FROM ${schema}.reject_counts
     WHERE (desk_id, reason_id, key_id, width_ms) = ($deskId, $reasonId, $keyId, $ms) AND start <= $end`,
  );
  for (const { lastAt, ...owner } of reasons) {
    dropRequests.run({ ...owner, kept: REQUESTS_PER_REASON_KEPT });
    for (const { ms, kept } of countWidths) {
      dropCounts.run({ ...owner, ms, end: startOfBucket(lastAt, ms) - kept * ms });
    }
  }
  for (const deskId of new Set(reasons.map((reason) => reason.deskId))) {
    dropOldReasons(db, schema, deskId);
  }
}

/** Their requests and counts go with them. */
function dropOldReasons(db: Database, schema: ActivitySchema, deskId: number): void {
  db.query(
    `DELETE FROM ${schema}.reject_reasons WHERE desk_id = $deskId AND (reason_id, key_id) NOT IN
       (SELECT reason_id, key_id FROM
          (SELECT reason_id, key_id, latest_id,
             row_number() OVER (PARTITION BY key_id ORDER BY latest_id DESC) AS nth
           FROM ${schema}.reject_reasons WHERE desk_id = $deskId)
        WHERE nth <= $perKey ORDER BY latest_id DESC LIMIT $kept)`,
  ).run({ deskId, perKey: REJECT_REASONS_PER_KEY_KEPT, kept: REJECT_REASONS_KEPT });
}

function idOf(reason: string): string {
  return new Bun.CryptoHasher("sha256").update(reason).digest("hex").slice(0, 16);
}

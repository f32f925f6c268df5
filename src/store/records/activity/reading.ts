/** What was done with a desk's keys: see `domain/activity/activity.ts`. */
import {
  activityWidths,
  type BucketQuery,
  type BucketSpan,
  type CountedBucket,
  type DeskBucket,
  type DifferingQuery,
  type DifferingTotal,
  type KeyRepeats,
  type RejectedWithBody,
  type RejectQuery,
  type Rejects,
  type Repeats,
  startOfBucket,
} from "../../../domain/activity/activity.ts";
import type { SentDuplicate, SentReject, SentValues } from "../../../domain/activity/sent.ts";
import type { FieldReasons } from "../../../domain/errors.ts";
import type { Activity } from "../../../domain/storage/activity.ts";
import { itemsOf, keysOf } from "../dialect.ts";
import type { Reader, Value } from "../sql.ts";
import { fieldsOf } from "./fields.ts";

export function readActivity(sql: Reader): Omit<Activity, "write" | "forgetSent"> {
  return {
    buckets: (query) => readBuckets(sql, query),
    bucketsOfDesks: (deskIds, span) =>
      sql.all<DeskBucket>(
        `SELECT desk_id AS "deskId", start, sum(stored) AS stored, sum(duplicate) AS duplicate,
           sum(rejected) AS rejected
         FROM counts WHERE desk_id IN (SELECT CAST(value AS INTEGER) FROM ${itemsOf("$1")}) AND reason_id = ''
           AND width_ms = $2 AND start >= $3
         GROUP BY desk_id, start ORDER BY start`,
        JSON.stringify(deskIds),
        ...since(span),
      ),
    keysStillInUse: (deskId, from, limit) => readStillInUse(sql, deskId, from, limit),
    rejects: (query) => readRejects(sql, query),
    rejected: ({ deskId, reason, keyId }, limit) =>
      sql.all<RejectedWithBody>(
        `SELECT rejects.request_id, rejects.key_id, rejects.at, rejects.message,
           sent.client_signal_id, sent.body, sent.body_bytes
         FROM rejects LEFT JOIN sent ON sent.desk_id = rejects.desk_id AND sent.signal_id = ''
           AND sent.request_id = rejects.request_id
         WHERE rejects.desk_id = $1 AND reason_id = $2 AND rejects.key_id = coalesce($3, rejects.key_id)
         ORDER BY rejects.request_id DESC LIMIT $4`,
        deskId,
        reason,
        keyId,
        limit,
      ),
    sentRejects: (deskId, limit) => readSentRejects(sql, deskId, limit),
    repeatsOf: (deskId, signalId) => readRepeats(sql, deskId, signalId),
    differing: (query) => readDiffering(sql, query),
    async differingIds(deskId) {
      const rows = await sql.all<{ id: string }>(
        "SELECT DISTINCT signal_id AS id FROM repeats WHERE desk_id = $1 AND differed_at > 0",
        deskId,
      );
      return rows.map(({ id }) => id);
    },
    async sentDuplicates(deskId, signalId) {
      const rows = await sql.all<Omit<SentDuplicate, "values"> & { readonly body: string }>(
        `SELECT request_id, key_id, at, body FROM sent WHERE desk_id = $1 AND signal_id = $2
         ORDER BY request_id DESC`,
        deskId,
        signalId,
      );
      return rows.map(({ body, ...row }) => ({ ...row, values: JSON.parse(body) as SentValues }));
    },
    differingTotal: (deskId, from) => sumDiffering(sql, deskId, from),
  };
}

/** The buckets of a desk (`$1`) and a width that begin with the one that contains a moment: {@link since}. */
const SINCE = "desk_id = $1 AND width_ms = $2 AND start >= $3";

function since({ width, from }: BucketSpan): [width: number, from: number] {
  const { ms } = activityWidths[width];
  return [ms, startOfBucket(from, ms)];
}

function readBuckets(
  sql: Reader,
  { deskId, keyIds, ...span }: BucketQuery,
): Promise<CountedBucket[]> {
  const [ofKeys, keyId, values] =
    keyIds === null
      ? ["", "NULL", []]
      : [`AND key_id IN (SELECT value FROM ${itemsOf("$4")})`, "key_id", [JSON.stringify(keyIds)]];
  return sql.all<CountedBucket>(
    `SELECT ${keyId} AS "keyId", start, sum(stored) AS stored, sum(duplicate) AS duplicate,
       sum(rejected) AS rejected, sum(unauthorized) AS unauthorized, max(last_at) AS "lastAt"
     FROM counts WHERE ${SINCE} AND reason_id = '' ${ofKeys} GROUP BY start, "keyId" ORDER BY start`,
    deskId,
    ...since(span),
    ...values,
  );
}

export async function readStillInUse(
  sql: Reader,
  deskId: number | null,
  from: number,
  limit: number,
): Promise<string[]> {
  const [width, start] = since({ width: "hour", from });
  const [ofDesk, values] = deskId === null ? ["", []] : ["AND desk_id = $4", [deskId]];
  const rows = await sql.all<{ key_id: string }>(
    `SELECT key_id FROM counts
     WHERE unauthorized > 0 AND reason_id = '' AND width_ms = $1 AND start >= $2 ${ofDesk}
     GROUP BY key_id ORDER BY max(last_at) DESC LIMIT $3`,
    width,
    start,
    limit,
    ...values,
  );
  return rows.map(({ key_id }) => key_id);
}

type RejectsRow = Omit<Rejects, "fields" | "keyIds"> & {
  readonly fields: string | null;
  readonly keyIds: string;
};

async function readRejects(
  sql: Reader,
  {
    deskId,
    keyId = null,
    status = null,
    field = null,
    reason = null,
    before = null,
    since: span,
    limit,
  }: RejectQuery,
): Promise<Rejects[]> {
  const values: Value[] = [deskId, ...since(span), limit];
  const given = (value: Value): string => `$${values.push(value)}`;
  const where = ["desk_id = $1"];
  if (keyId !== null) where.push(`key_id = ${given(keyId)}`);
  if (status !== null) where.push(`status = ${given(status)}`);
  if (reason !== null) where.push(`reason_id = ${given(reason)}`);
  if (field !== null) where.push(`${given(field)} IN (${keysOf("fields")})`);
  const having = before === null ? "" : `HAVING max(latest_id) < ${given(before)}`;
  const rows = await sql.all<RejectsRow>(
    `SELECT reason_id AS id, max(status) AS status, max(error) AS error, max(fields) AS fields,
       max(more_fields) AS "moreFields", sum(count) AS count, min(first_at) AS "firstAt",
       max(last_at) AS "lastAt", max(latest_id) AS "latestId",
       string_agg(key_id, ',' ORDER BY latest_id DESC) AS "keyIds"
     FROM
       (SELECT reason_id, key_id, max(status) AS status, max(error) AS error, max(fields) AS fields,
          max(more_fields) AS more_fields, min(at) AS first_at, max(at) AS last_at,
          max(request_id) AS latest_id
        FROM rejects WHERE ${where.join(" AND ")} GROUP BY reason_id, key_id) AS described
     JOIN
       (SELECT reason_id, key_id, sum(rejected) AS count FROM counts
        WHERE ${SINCE} AND reason_id IN (SELECT reason_id FROM rejects WHERE desk_id = $1)
        GROUP BY reason_id, key_id) AS counted USING (reason_id, key_id)
     GROUP BY reason_id ${having} ORDER BY max(latest_id) DESC LIMIT $4`,
    ...values,
  );
  return rows.map((row) => ({
    ...row,
    fields: fieldsIn(row.fields),
    keyIds: row.keyIds.split(","),
  }));
}

export async function readSentRejects(
  sql: Reader,
  deskId: number | null,
  limit: number,
): Promise<SentReject[]> {
  const [ofDesk, values] = deskId === null ? ["", []] : ["AND desk_id = $2", [deskId]];
  const rows = await sql.all<SentReject & { readonly fields: string | null }>(
    `SELECT request_id, desk_id, key_id, at, status, error, fields, more_fields, message,
       client_signal_id, body, body_bytes
     FROM sent WHERE signal_id = '' ${ofDesk} ORDER BY request_id DESC LIMIT $1`,
    limit,
    ...values,
  );
  return rows.map((row) => ({ ...row, fields: fieldsIn(row.fields) }));
}

function fieldsIn(json: string | null): FieldReasons | null {
  return json === null ? null : (JSON.parse(json) as FieldReasons);
}

const REPEATS = `sum(duplicates) AS duplicates, sum(differing) AS differing,
  string_agg(CAST(differs AS TEXT), ',') AS bits, max(last_at) AS "lastAt", max(differed_at) AS "differedAt"`;

type RepeatsRow<R> = Omit<R, "differs"> & { readonly bits: string };

/** `bits`: of each row that was added up. */
function repeatsIn<R>({ bits, ...row }: RepeatsRow<R>) {
  return { ...row, differs: fieldsOf(bits.split(",").map(Number)) };
}

async function readRepeats(sql: Reader, deskId: number, signalId: string): Promise<Repeats | null> {
  const row = await sql.get<RepeatsRow<Repeats>>(
    `SELECT ${REPEATS} FROM repeats WHERE desk_id = $1 AND signal_id = $2 GROUP BY signal_id`,
    deskId,
    signalId,
  );
  return row && repeatsIn(row);
}

async function readDiffering(
  sql: Reader,
  { deskId, before, limit }: DifferingQuery,
): Promise<KeyRepeats[]> {
  const [isBefore, values] =
    before === null
      ? ["", []]
      : [
          "AND (max(differed_at), signal_id, key_id) < ($3, $4, $5)",
          [before.differedAt, before.signalId, before.keyId],
        ];
  const rows = await sql.all<RepeatsRow<KeyRepeats>>(
    `SELECT signal_id AS "signalId", key_id AS "keyId", ${REPEATS}
     FROM repeats WHERE desk_id = $1 GROUP BY signal_id, key_id
     HAVING max(differed_at) > 0 ${isBefore}
     ORDER BY max(differed_at) DESC, signal_id DESC, key_id DESC LIMIT $2`,
    deskId,
    limit,
    ...values,
  );
  return rows.map(repeatsIn);
}

function sumDiffering(sql: Reader, deskId: number, from: number): Promise<DifferingTotal | null> {
  return sql.get<DifferingTotal>(
    `SELECT sum(differing) AS count, max(differed_at) AS "lastAt" FROM
       (SELECT sum(differing) AS differing, max(differed_at) AS differed_at FROM repeats
        WHERE desk_id = $1 GROUP BY signal_id, key_id HAVING max(differed_at) >= $2) AS recent
     HAVING sum(differing) > 0`,
    deskId,
    from,
  );
}

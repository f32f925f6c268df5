/** Requests by outcome: the table `buckets`. */
import {
  type ActivityBatch,
  type ActivityOwner,
  type ActivityWidth,
  activityWidths,
  type Bucket,
  type KeyActivity,
  startOfBucket,
} from "../../../domain/activity/activity.ts";
import { itemsOf } from "../dialect.ts";
import type { Reader, Tx } from "../sql.ts";
import { merging } from "./merging.ts";

const WIDTHS = Object.keys(activityWidths) as ActivityWidth[];

const OUTCOMES = "sum(stored) AS stored, sum(duplicate) AS duplicate, sum(rejected) AS rejected";
/** The buckets of a desk (`$1`) and a width that begin with the one that contains a moment: {@link since}. */
const SINCE = "desk_id = $1 AND width_ms = $2 AND start >= $3";

function since(from: number, width: ActivityWidth): [width: number, from: number] {
  const { ms } = activityWidths[width];
  return [ms, startOfBucket(from, ms)];
}

export function readBuckets(
  sql: Reader,
  { deskId, keyId }: ActivityOwner,
  width: ActivityWidth,
  from: number,
): Promise<Bucket[]> {
  const [ofKey, values] = keyId === null ? ["", []] : ["AND key_id = $4", [keyId]];
  return sql.all<Bucket>(
    `SELECT start, ${OUTCOMES} FROM buckets WHERE ${SINCE} ${ofKey} GROUP BY start ORDER BY start`,
    deskId,
    ...since(from, width),
    ...values,
  );
}

interface KeysQuery {
  readonly deskId: number;
  readonly keyIds: readonly string[];
  readonly width: ActivityWidth;
  readonly from: number;
}

export async function readBucketsOfKeys(
  sql: Reader,
  { deskId, keyIds, width, from }: KeysQuery,
): Promise<ReadonlyMap<string, readonly Bucket[]>> {
  const rows = await sql.all<Bucket & { key_id: string }>(
    `SELECT key_id, start, ${OUTCOMES} FROM buckets
     WHERE ${SINCE} AND key_id IN (SELECT value FROM ${itemsOf("$4")})
     GROUP BY start, key_id ORDER BY start`,
    deskId,
    ...since(from, width),
    JSON.stringify(keyIds),
  );
  const found = new Map<string, Bucket[]>();
  for (const { key_id, ...bucket } of rows) {
    const ofKey = found.get(key_id) ?? [];
    ofKey.push(bucket);
    found.set(key_id, ofKey);
  }
  return found;
}

export async function countOfKeys(
  sql: Reader,
  deskId: number,
  keyIds: readonly string[],
  from: number,
): Promise<ReadonlyMap<string, KeyActivity>> {
  const rows = await sql.all<KeyActivity & { key_id: string }>(
    `SELECT key_id, sum(stored + duplicate + rejected) AS requests,
       sum(rejected) AS rejected, sum(unauthorized) AS unauthorized, max(last_at) AS "lastAt"
     FROM buckets WHERE ${SINCE} AND key_id IN (SELECT value FROM ${itemsOf("$4")}) GROUP BY key_id`,
    deskId,
    ...since(from, "hour"),
    JSON.stringify(keyIds),
  );
  return new Map(rows.map(({ key_id, ...activity }) => [key_id, activity]));
}

export async function readStillInUse(
  sql: Reader,
  deskId: number,
  from: number,
  limit: number,
): Promise<string[]> {
  const rows = await sql.all<{ key_id: string }>(
    `SELECT key_id FROM buckets WHERE ${SINCE} AND unauthorized > 0
     GROUP BY key_id ORDER BY max(last_at) DESC LIMIT $4`,
    deskId,
    ...since(from, "hour"),
    limit,
  );
  return rows.map(({ key_id }) => key_id);
}

export async function addMinutes(
  tx: Tx,
  into: string,
  minute: ActivityBatch["minutes"][number],
): Promise<void> {
  const { deskId, keyId, start, stored, duplicate, rejected, unauthorized, lastAt } = minute;
  for (const width of WIDTHS) {
    await tx.run(
      `INSERT INTO ${into}buckets AS kept
         (desk_id, width_ms, start, key_id, stored, duplicate, rejected, unauthorized, last_at)
       VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9) ${merging.buckets}`,
      deskId,
      ...since(start, width),
      keyId,
      stored,
      duplicate,
      rejected,
      unauthorized,
      lastAt,
    );
  }
}

/** Desks, and the newest minute of each. */
export function touchedMinutes(
  sql: Reader,
  schema: string,
): Promise<{ deskId: number; newest: number }[]> {
  return sql.all(
    `SELECT desk_id AS "deskId", max(start) AS newest FROM ${schema}buckets
     WHERE width_ms = $1 GROUP BY desk_id`,
    activityWidths.minute.ms,
  );
}

export async function dropOldBuckets(
  tx: Tx,
  from: string,
  deskId: number,
  newest: number,
): Promise<void> {
  for (const { ms, kept } of Object.values(activityWidths)) {
    await tx.run(
      `DELETE FROM ${from}buckets WHERE desk_id = $1 AND width_ms = $2 AND start <= $3`,
      deskId,
      ms,
      newest - ms * kept,
    );
  }
}

/**
 * What was done with a desk's keys: see `domain/activity/activity.ts`. The tables may lie in another schema: `into` names
 * it, with a point at its end.
 */
import type { ActivityBatch } from "../../../domain/activity/activity.ts";
import type { Activity } from "../../../domain/storage/activity.ts";
import type { Reader, Tx } from "../sql.ts";
import {
  addMinutes,
  countOfKeys,
  dropOldBuckets,
  readBuckets,
  readBucketsOfKeys,
  readStillInUse,
  touchedMinutes,
} from "./buckets.ts";
import { addDiffering, dropOldDiffering, readDiffering, sumDiffering } from "./differing.ts";
import { addRejects, dropOldRejects, readRejects, touchedRejects } from "./rejects.ts";
import { addRepeats, dropOldRepeats, readRepeats } from "./repeats.ts";

type Reading = Omit<Activity, "write">;

export function readActivity(sql: Reader): Reading {
  return {
    buckets: (owner, width, from) => readBuckets(sql, owner, width, from),
    bucketsOfKeys: (deskId, keyIds, width, from) =>
      readBucketsOfKeys(sql, { deskId, keyIds, width, from }),
    ofKeys: (deskId, keyIds, from) => countOfKeys(sql, deskId, keyIds, from),
    keysStillInUse: (deskId, from, limit) => readStillInUse(sql, deskId, from, limit),
    rejects: (query) => readRejects(sql, query),
    repeatsOf: (deskId, signalId) => readRepeats(sql, deskId, signalId),
    differing: (query) => readDiffering(sql, query),
    differingTotal: (deskId, from) => sumDiffering(sql, deskId, from),
  };
}

export async function addBatch(tx: Tx, into: string, batch: ActivityBatch): Promise<void> {
  for (const minute of batch.minutes) await addMinutes(tx, into, minute);
  for (const one of batch.repeats) await addRepeats(tx, into, one);
  for (const one of batch.rejects) await addRejects(tx, into, one);
  for (const one of batch.differing) await addDiffering(tx, into, one);
}

/** What a schema has of each desk. */
export interface Touched {
  readonly minutes: Awaited<ReturnType<typeof touchedMinutes>>;
  readonly rejects: Awaited<ReturnType<typeof touchedRejects>>;
  readonly repeats: readonly Desk[];
  readonly differing: readonly Desk[];
}

interface Desk {
  readonly deskId: number;
}

export async function touchedIn(tx: Reader, schema: string): Promise<Touched> {
  const desksIn = (table: "repeats" | "differing") =>
    tx.all<Desk>(`SELECT DISTINCT desk_id AS "deskId" FROM ${schema}${table}`);
  return {
    minutes: await touchedMinutes(tx, schema),
    rejects: await touchedRejects(tx, schema),
    repeats: await desksIn("repeats"),
    differing: await desksIn("differing"),
  };
}

export async function dropOld(tx: Tx, from: string, touched: Touched): Promise<void> {
  for (const { deskId, newest } of touched.minutes) await dropOldBuckets(tx, from, deskId, newest);
  for (const { deskId } of touched.repeats) await dropOldRepeats(tx, from, deskId);
  for (const { deskId } of touched.differing) await dropOldDiffering(tx, from, deskId);
  await dropOldRejects(tx, from, touched.rejects);
}

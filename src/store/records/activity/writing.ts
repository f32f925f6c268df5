/** How counts, rejects and repeats are added, and what is old is dropped. */
import {
  type ActivityBatch,
  activityWidths,
  DIFFERING_KEPT,
  REJECT_REASONS_KEPT,
  REJECT_REASONS_PER_KEY_KEPT,
  REPEATS_KEPT,
  REQUESTS_PER_REASON_KEPT,
  startOfBucket,
} from "../../../domain/activity/activity.ts";
import {
  DIFFERING_PER_SIGNAL_KEPT,
  DIFFERING_SENT_KEPT,
  keptBody,
  keptValues,
  REJECTED_KEPT,
} from "../../../domain/activity/sent.ts";
import { greaterOf, itemsOf } from "../dialect.ts";
import type { Tx, Value } from "../sql.ts";
import { bitsOf } from "./fields.ts";

const REASON = "desk_id, reason_id, key_id";

type Row = Record<"desk_id" | "reason_id" | "key_id", string | number>;

const sum = (column: string): string => `${column} = kept.${column} + excluded.${column}`;
const latest = (column: string): string =>
  `${column} = ${greaterOf(`kept.${column}`, `excluded.${column}`)}`;
const onConflict = (key: string, ...changes: readonly string[]): string =>
  `ON CONFLICT (${key}) DO UPDATE SET ${changes.join(", ")}`;

/** How a row is added to one with the same key, `kept`, per table: what follows `INSERT INTO … AS kept …`. */
const merging = {
  counts: onConflict(
    "desk_id, reason_id, width_ms, start, key_id",
    ...["stored", "duplicate", "rejected", "unauthorized"].map(sum),
    latest("last_at"),
  ),
  rejects: onConflict(`${REASON}, request_id`, latest("at")),
  repeats: onConflict(
    "desk_id, signal_id, key_id",
    sum("duplicates"),
    sum("differing"),
    "differs = kept.differs | excluded.differs",
    latest("last_at"),
    latest("differed_at"),
  ),
  sent: onConflict("desk_id, signal_id, request_id", latest("at")),
} as const;

export const tables = Object.keys(merging) as (keyof typeof merging)[];

/** Adds the rows of the tables that begin with `from` to those that begin with `into`, and drops what is old there. */
export async function addRows(tx: Tx, into: string, from: string): Promise<void> {
  for (const table of tables) {
    await tx.run(
      `INSERT INTO ${into}${table} AS kept SELECT * FROM ${from}${table} WHERE true ${merging[table]}`,
    );
  }
  await dropOld(tx, into, from);
}

/**
 * The tables may lie in another schema: `into` names it, with a point at its end. Nothing that the clients of `silent`
 * desks sent is added.
 */
export async function addBatch(
  tx: Tx,
  into: string,
  { minutes, repeats, bodies, values }: ActivityBatch,
  silent: ReadonlySet<number>,
): Promise<void> {
  // In order, without a wait for each answer.
  const added: Promise<number>[] = [];
  const add = (table: keyof typeof merging, row: Record<string, Value>): void => {
    const places = Object.keys(row).map((_, index) => `$${index + 1}`);
    added.push(
      tx.run(
        `INSERT INTO ${into}${table} AS kept (${Object.keys(row).join(", ")})
         VALUES (${places.join(", ")}) ${merging[table]}`,
        ...Object.values(row),
      ),
    );
  };
  const count = (start: number, row: Record<string, Value>): void => {
    for (const { ms } of Object.values(activityWidths)) {
      add("counts", { ...row, width_ms: ms, start: startOfBucket(start, ms) });
    }
  };
  for (const { deskId, keyId, start, lastAt, rejects, ...outcomes } of minutes) {
    const owner = { desk_id: deskId, key_id: keyId };
    count(start, { ...owner, reason_id: "", ...outcomes, last_at: lastAt });
    const none = { stored: 0, duplicate: 0, unauthorized: 0 };
    for (const [text, { reason, count: rejected, latest: requests }] of rejects) {
      const ofReason = { ...owner, reason_id: idOf(text) };
      count(start, { ...ofReason, ...none, rejected, last_at: lastAt });
      const { status, error, moreFields } = reason;
      const fields = reason.fields === null ? null : JSON.stringify(reason.fields);
      const described = { ...ofReason, status, error, fields, more_fields: moreFields };
      for (const request of requests) add("rejects", { ...described, ...request });
    }
  }
  for (const { duplicates, differing, ...repeated } of repeats) {
    add("repeats", {
      desk_id: repeated.deskId,
      signal_id: repeated.signalId,
      key_id: repeated.keyId,
      duplicates,
      differing,
      differs: bitsOf(repeated.differs),
      last_at: repeated.lastAt,
      differed_at: repeated.differedAt,
    });
  }
  for (const one of bodies) {
    if (silent.has(one.deskId)) continue;
    const { status, error, fields, moreFields, message } = one.answer;
    add("sent", {
      ...ownerOf(one),
      signal_id: "",
      status,
      error,
      fields: fields && JSON.stringify(fields),
      more_fields: moreFields,
      message,
      ...keptBody(one),
      body_bytes: one.bytes,
    });
  }
  for (const one of values) {
    if (silent.has(one.deskId)) continue;
    const body = JSON.stringify(keptValues(one.values));
    add("sent", { ...ownerOf(one), signal_id: one.signalId, body });
  }
  await Promise.all(added);
}

function ownerOf({ deskId, keyId, requestId, at }: ActivityBatch["bodies" | "values"][number]) {
  return { desk_id: deskId, key_id: keyId, request_id: requestId, at };
}

/** Deletes what the clients of these desks sent. */
export async function forgetSent(tx: Tx, from: string, desks: Iterable<number>): Promise<void> {
  const ids = [...desks];
  if (ids.length === 0) return;
  await tx.run(
    `DELETE FROM ${from}sent WHERE desk_id IN (SELECT CAST(value AS INTEGER) FROM ${itemsOf("$1")})`,
    JSON.stringify(ids),
  );
}

function idOf(reason: string): string {
  return new Bun.CryptoHasher("sha256").update(reason).digest("hex").slice(0, 16);
}

/** Of the desks, keys and reasons that have rows in the schema `touched`. */
export async function dropOld(tx: Tx, from: string, touched: string): Promise<void> {
  for (const { ms, kept } of Object.values(activityWidths)) {
    await tx.run(
      `DELETE FROM ${from}counts WHERE desk_id IN (SELECT desk_id FROM ${touched}counts)
         AND reason_id IN (SELECT reason_id FROM ${touched}counts) AND width_ms = $1
         AND start <= (SELECT max(start) FROM ${touched}counts WHERE width_ms = $1) - $2`,
      ms,
      ms * kept,
    );
  }
  await dropRejects(tx, from, touched);
  await dropSent(tx, from, touched);
  for (const { desk_id } of await tx.all<Row>(`SELECT DISTINCT desk_id FROM ${touched}repeats`)) {
    const upTo = (columns: string, where: string, kept: string): string =>
      `(${columns}) <= (SELECT ${columns} FROM ${from}repeats WHERE desk_id = $1 AND ${where}
         ORDER BY ${columns.replaceAll(",", " DESC,")} DESC LIMIT 1 OFFSET ${kept})`;
    await tx.run(
      `DELETE FROM ${from}repeats WHERE desk_id = $1 AND ${upTo("signal_id, key_id", "true", "$2")}
         AND (differed_at = 0 OR ${upTo("differed_at, signal_id, key_id", "differed_at > 0", "$3")})`,
      desk_id,
      REPEATS_KEPT,
      DIFFERING_KEPT,
    );
  }
}

async function dropSent(tx: Tx, from: string, touched: string): Promise<void> {
  await tx.run(
    `DELETE FROM ${from}sent WHERE (desk_id, signal_id, request_id) IN
       (SELECT desk_id, signal_id, request_id FROM
          (SELECT desk_id, signal_id, request_id,
             row_number() OVER (PARTITION BY desk_id, signal_id ORDER BY request_id DESC) AS nth,
             row_number() OVER (PARTITION BY desk_id, signal_id = '' ORDER BY request_id DESC) AS nth_of_desk
           FROM ${from}sent WHERE desk_id IN (SELECT desk_id FROM ${touched}sent)
             AND (desk_id, signal_id = '') IN (SELECT desk_id, signal_id = '' FROM ${touched}sent)) AS ranked
        WHERE CASE signal_id WHEN '' THEN nth > $1 ELSE nth > $2 OR nth_of_desk > $3 END)`,
    REJECTED_KEPT,
    DIFFERING_PER_SIGNAL_KEPT,
    DIFFERING_SENT_KEPT,
  );
}

/** Keeps the latest requests, and the first one, of each key and reason, and the latest reasons with their counts. */
async function dropRejects(tx: Tx, from: string, touched: string): Promise<void> {
  const drop = (rows: string, per: string, where: string, kept: number): Promise<Row[]> =>
    tx.all(
      `DELETE FROM ${from}rejects WHERE (${rows}) IN
         (SELECT ${rows} FROM
            (SELECT ${rows}, row_number() OVER (PARTITION BY ${per} ORDER BY max(request_id) DESC) AS nth
             FROM ${from}rejects AS one WHERE ${where} GROUP BY ${rows}) AS ranked
          WHERE nth > $1)
       RETURNING ${REASON}`,
      kept,
    );
  const isTouched = `(${REASON}) IN (SELECT ${REASON} FROM ${touched}rejects)`;
  const first = `SELECT min(request_id) FROM ${from}rejects AS other
    WHERE (${REASON}) = (one.desk_id, one.reason_id, one.key_id)`;
  const isLater = `${isTouched} AND request_id > (${first})`;
  await drop(`${REASON}, request_id`, REASON, isLater, REQUESTS_PER_REASON_KEPT);
  const isDesk = `desk_id IN (SELECT desk_id FROM ${touched}rejects)`;
  const dropped = [
    ...(await drop(REASON, "desk_id, key_id", isDesk, REJECT_REASONS_PER_KEY_KEPT)),
    ...(await drop(REASON, "desk_id", isDesk, REJECT_REASONS_KEPT)),
  ];
  for (const { desk_id, reason_id, key_id } of dropped) {
    await tx.run(
      `DELETE FROM ${from}counts WHERE desk_id = $1 AND reason_id = $2 AND key_id = $3`,
      desk_id,
      reason_id,
      key_id,
    );
  }
}

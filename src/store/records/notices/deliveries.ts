/** Notices on their way, and which troubles last. */
import type { DeliveryRecord, Notice } from "../../../domain/notice/notice.ts";
import {
  type Deliveries,
  NOTICES_PER_HOUR_MAX,
  type QueuedNotice,
  type Trouble,
  type Troubles,
} from "../../../domain/storage/notices.ts";
import { IdSequence } from "../../../domain/signal/id.ts";
import { UserError } from "../../../lib/errors.ts";
import { HOUR_MS } from "../../../lib/text/time.ts";
import type { Reader, Sql, Tx } from "../sql.ts";
import { placesOf, type QueuedPlace, sealedPlaces } from "./places.ts";

/** Of each place, those that have ended. */
const KEPT = 100;

interface DeliveryRow {
  readonly id: string;
  readonly place_id: string;
  readonly notice: string;
  readonly is_test: number;
  readonly created_at: number;
  readonly due_at: number | null;
  readonly attempts: number;
  readonly tried_at: number | null;
  readonly arrived_at: number | null;
  readonly answer: string | null;
}

export function deliveries(sql: Sql) {
  return {
    sealedPlaces: () => sealedPlaces(sql),

    enqueue: (notice) =>
      sql.transaction(async (tx) => {
        let queued = 0;
        for (const place of await placesOf(tx, notice.deskId)) {
          if (place.kinds?.includes(notice.kind) === false) continue;
          if (await enqueueFor(tx, place, notice)) queued += 1;
        }
        return queued;
      }),

    enqueueTest: (placeId, notice) =>
      sql.transaction(async (tx) => {
        if ((await countOfHour(tx, placeId, { isTest: true })) >= NOTICES_PER_HOUR_MAX) {
          throw new UserError(
            `This place got ${NOTICES_PER_HOUR_MAX} tests within an hour, which is the limit: wait a while.`,
          );
        }
        return insert(tx, placeId, { ...notice, kind: "test", suppressed: 0 });
      }),

    async due(limit) {
      const rows = await sql.all<DeliveryRow>(
        `SELECT * FROM notice_deliveries WHERE id IN
           (SELECT min(id) FROM notice_deliveries WHERE due_at <= $1 GROUP BY place_id)
         ORDER BY id LIMIT $2`,
        sql.now,
        limit,
      );
      return rows.map((row) => ({
        id: row.id,
        placeId: row.place_id,
        createdAt: row.created_at,
        attempts: row.attempts,
        isTest: row.is_test === 1,
        notice: JSON.parse(row.notice) as QueuedNotice,
      }));
    },

    settle: (id, outcome) =>
      sql.transaction(async (tx) => {
        await tx.run(
          `UPDATE notice_deliveries SET attempts = attempts + 1, tried_at = $1, answer = $2,
             due_at = $3, arrived_at = $4 WHERE id = $5`,
          tx.now,
          outcome.answer,
          outcome.state === "waiting" ? outcome.retryAt : null,
          outcome.state === "delivered" ? tx.now : null,
          id,
        );
      }),

    async lastDeliveries(placeId, limit) {
      const where = "WHERE place_id = $1 ORDER BY id DESC LIMIT $2";
      const sqlText = `SELECT * FROM notice_deliveries ${where}`;
      return (await sql.all<DeliveryRow>(sqlText, placeId, limit)).map(recordOf);
    },

    async findDelivery(id) {
      const row = await sql.get<DeliveryRow>("SELECT * FROM notice_deliveries WHERE id = $1", id);
      return row && recordOf(row);
    },

    forgetDeliveries: (before) =>
      sql.transaction(async (tx) => {
        await tx.run(
          `DELETE FROM notice_deliveries WHERE due_at IS NULL AND (created_at < $1 OR id <=
             (SELECT other.id FROM notice_deliveries AS other
              WHERE other.place_id = notice_deliveries.place_id
              ORDER BY other.id DESC LIMIT 1 OFFSET ${KEPT}))`,
          before,
        );
      }),
  } satisfies Deliveries;
}

function recordOf(row: DeliveryRow): DeliveryRecord {
  const { id, created_at, due_at, attempts, tried_at, arrived_at, answer } = row;
  const { title } = JSON.parse(row.notice) as QueuedNotice;
  const ended = arrived_at === null ? "failed" : "delivered";
  const state = due_at === null ? ended : "waiting";
  return { id, created_at, title, state, attempts, tried_at, answer };
}

/** Returns false if the place has had its share, and counts what it does not get. */
async function enqueueFor(tx: Tx, place: QueuedPlace, notice: Notice): Promise<boolean> {
  const isOver = (await countOfHour(tx, place.id, { isTest: false })) >= NOTICES_PER_HOUR_MAX;
  const suppressed = isOver ? place.suppressed + 1 : 0;
  if (suppressed !== place.suppressed) {
    await tx.run("UPDATE notice_places SET suppressed = $1 WHERE id = $2", suppressed, place.id);
  }
  if (!isOver) await insert(tx, place.id, { ...notice, suppressed: place.suppressed });
  return !isOver;
}

async function insert(tx: Tx, placeId: string, notice: QueuedNotice): Promise<string> {
  const id = await nextId(tx, placeId);
  await tx.run(
    `INSERT INTO notice_deliveries (id, place_id, notice, is_test, created_at, due_at)
     VALUES ($1, $2, $3, $4, $5, $5)`,
    id,
    placeId,
    JSON.stringify(notice),
    notice.kind === "test" ? 1 : 0,
    tx.now,
  );
  return id;
}

/** Rises within the place, whatever the clock does: the beginning of a trouble arrives before its end. */
async function nextId(tx: Reader, placeId: string): Promise<string> {
  const last = await tx.get<{ id: string | null }>(
    "SELECT max(id) AS id FROM notice_deliveries WHERE place_id = $1",
    placeId,
  );
  return new IdSequence(last?.id ?? null).next(tx.now);
}

async function countOfHour(
  tx: Reader,
  placeId: string,
  { isTest }: { readonly isTest: boolean },
): Promise<number> {
  const row = await tx.get<{ count: number }>(
    `SELECT count(*) AS count FROM notice_deliveries
     WHERE place_id = $1 AND created_at > $2 AND is_test = $3`,
    placeId,
    tx.now - HOUR_MS,
    isTest ? 1 : 0,
  );
  return row?.count ?? 0;
}

export function troubles(sql: Sql) {
  return {
    listTroubles: () =>
      sql.all<Trouble>(
        `SELECT kind, desk_id AS "deskId", subject, began_at AS "beganAt", told_at AS "toldAt", count
         FROM notice_troubles ORDER BY name`,
      ),

    saveTrouble: (trouble) =>
      sql.transaction(async (tx) => {
        await tx.run(
          `INSERT INTO notice_troubles (name, kind, desk_id, subject, began_at, told_at, count)
           VALUES ($1, $2, $3, $4, $5, $6, $7)
           ON CONFLICT (name) DO UPDATE SET began_at = excluded.began_at, told_at = excluded.told_at,
             count = excluded.count`,
          nameOf(trouble),
          trouble.kind,
          trouble.deskId,
          trouble.subject,
          trouble.beganAt,
          trouble.toldAt,
          trouble.count,
        );
      }),

    endTrouble: (trouble) =>
      sql.transaction(async (tx) => {
        await tx.run("DELETE FROM notice_troubles WHERE name = $1", nameOf(trouble));
      }),
  } satisfies Troubles;
}

function nameOf({ kind, deskId, subject }: Pick<Trouble, "kind" | "deskId" | "subject">): string {
  return `${kind} ${deskId ?? "operator"} ${subject}`;
}

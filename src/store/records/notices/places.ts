/** Where notices go. */
import { ulid } from "ulid";
import type { AuditAction } from "../../../domain/audit/audit.ts";
import { destinations, type NoticeKind, type NoticePlace } from "../../../domain/notice/notice.ts";
import type { Author } from "../../../domain/storage/author.ts";
import {
  type NewPlace,
  type Places,
  PLACES_MAX,
  type SealedPlace,
} from "../../../domain/storage/notices.ts";
import type { OfDesk } from "../../../domain/storage/registry.ts";
import { NotFoundError, UserError } from "../../../lib/errors.ts";
import { addEntry } from "../audit.ts";
import { activeDesk, deskIdOf } from "../desk-rows.ts";
import type { Reader, Sql, Tx, Value } from "../sql.ts";

const COLUMNS = `notice_places.id, desks.name AS desk, notice_places.desk_id, notice_places.destination,
  notice_places.shown, notice_places.kinds, notice_places.by_admin, notice_places.created_at`;

interface PlaceRow extends Omit<NoticePlace, "kinds" | "by_admin"> {
  readonly desk_id: number | null;
  readonly kinds: string | null;
  readonly by_admin: number;
}

/** Those in use; `condition` begins with AND. */
function selectPlaces<Row extends PlaceRow>(
  sql: Reader,
  condition: string,
  ...values: Value[]
): Promise<Row[]> {
  return sql.all<Row>(
    `SELECT ${COLUMNS}, notice_places.sealed, notice_places.suppressed FROM notice_places
     LEFT JOIN desks ON desks.id = notice_places.desk_id
     WHERE notice_places.removed_at IS NULL ${condition} ORDER BY notice_places.id`,
    ...values,
  );
}

/** A place with what only its deliveries need. */
export interface QueuedPlace extends NoticePlace {
  readonly suppressed: number;
}

type FullRow = PlaceRow & Pick<SealedPlace, "sealed"> & Pick<QueuedPlace, "suppressed">;

/** Of a desk that is not archived, or of the operator (null). */
export async function placesOf(sql: Reader, deskId: number | null): Promise<QueuedPlace[]> {
  const of = "AND notice_places.desk_id IS NOT DISTINCT FROM $1 AND desks.archived_at IS NULL";
  const rows = await selectPlaces<FullRow>(sql, of, deskId);
  return rows.map((row) => ({ ...placeOf(row), suppressed: row.suppressed }));
}

export async function sealedPlaces(sql: Reader): Promise<SealedPlace[]> {
  const rows = await selectPlaces<FullRow>(sql, "AND desks.archived_at IS NULL");
  return rows.map((row) => ({ ...placeOf(row), deskId: row.desk_id, sealed: row.sealed }));
}

function placeOf(row: PlaceRow): NoticePlace {
  const { id, desk, destination, shown, created_at } = row;
  const kinds = row.kinds === null ? null : (JSON.parse(row.kinds) as NoticeKind[]);
  return { id, desk, destination, shown, kinds, by_admin: row.by_admin === 1, created_at };
}

async function findPlace(
  sql: Reader,
  id: string,
  { desk = null }: OfDesk = {},
): Promise<NoticePlace | null> {
  const of = `AND notice_places.id = $1 AND (CAST($2 AS INTEGER) IS NULL OR notice_places.desk_id = $2)`;
  const [row] = await selectPlaces(sql, of, id.toUpperCase(), await deskIdOf(sql, desk));
  return row === undefined ? null : placeOf(row);
}

export function places(sql: Sql) {
  return {
    async listPlaces(of) {
      const only = "AND notice_places.desk_id IS NOT DISTINCT FROM $1";
      return (await selectPlaces(sql, only, await deskIdOf(sql, of))).map(placeOf);
    },

    findPlace: (id, of) => findPlace(sql, id, of),

    addPlace(place, by) {
      return sql.transaction(async (tx) => {
        const deskId = place.desk === null ? null : (await activeDesk(tx, place.desk)).id;
        await requireRoom(tx, deskId);
        if (by.memberId !== null) await requireOwnAddress(tx, place, deskId);
        const id = ulid(tx.now);
        await tx.run(
          `INSERT INTO notice_places (id, desk_id, destination, shown, sealed, kinds, by_admin, created_at)
           VALUES ($1, $2, $3, $4, $5, $6, $7, $8)`,
          id,
          deskId,
          place.destination,
          place.shown,
          place.sealed,
          place.kinds === null ? null : JSON.stringify(place.kinds),
          by.memberId === null ? 1 : 0,
          tx.now,
        );
        const added = (await findPlace(tx, id)) as NoticePlace;
        await addPlaceEntry(tx, by, deskId, "desk.notices_added", added);
        return added;
      });
    },

    removePlace(id, of, by) {
      return sql.transaction(async (tx) => {
        const record = await findPlace(tx, id, of);
        if (record === null) {
          throw new NotFoundError("There is no place with this id: list the ids", "notify list");
        }
        await remove(tx, by, record);
        return record;
      });
    },
  } satisfies Places;
}

/** A member who was removed hears of nothing any more. */
export async function removeAddress(
  tx: Tx,
  by: Author,
  deskId: number,
  email: string,
): Promise<void> {
  const of = "AND notice_places.desk_id = $1 AND destination = 'email' AND shown = $2";
  for (const row of await selectPlaces(tx, of, deskId, email)) await remove(tx, by, placeOf(row));
}

async function remove(tx: Tx, by: Author, place: NoticePlace): Promise<void> {
  await tx.run("DELETE FROM notice_deliveries WHERE place_id = $1", place.id);
  const update = "UPDATE notice_places SET removed_at = $1, sealed = NULL WHERE id = $2";
  await tx.run(update, tx.now, place.id);
  await addPlaceEntry(tx, by, await deskIdOf(tx, place.desk), "desk.notices_removed", place);
}

async function addPlaceEntry(
  tx: Tx,
  by: Author,
  deskId: number | null,
  action: AuditAction,
  { destination, shown, kinds }: NoticePlace,
): Promise<void> {
  const which = kinds === null ? "" : ` (${kinds.join(", ")})`;
  const detail = `${destinations[destination]}, ${shown}${which}`;
  await addEntry(tx, by, { deskId, action, detail });
}

async function requireRoom(tx: Tx, deskId: number | null): Promise<void> {
  const { count } = (await tx.get<{ count: number }>(
    `SELECT count(*) AS count FROM notice_places
     WHERE desk_id IS NOT DISTINCT FROM $1 AND removed_at IS NULL`,
    deskId,
  )) as { count: number };
  if (count < PLACES_MAX) return;
  throw new UserError(
    `Notices go to ${count} places already, which is the limit: remove one`,
    "notify remove ID",
  );
}

/** Otherwise a member could have our mail server write to anybody. */
async function requireOwnAddress(
  tx: Tx,
  { destination, shown }: NewPlace,
  deskId: number | null,
): Promise<void> {
  if (destination !== "email") return;
  const member = await tx.get(
    "SELECT 1 FROM members WHERE desk_id = $1 AND email = $2 AND removed_at IS NULL",
    deskId,
    shown,
  );
  if (member !== null) return;
  throw new UserError(
    `${shown} is not the address of a member of this desk: write a member's address, or ask an administrator to add this one, with: signalbox notify add`,
  );
}

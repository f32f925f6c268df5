/** Which desks have somebody who gets notices, and what is looked at for them. */
import type { Watching, WatchedDesk } from "../../../domain/storage/notices.ts";
import { type SilenceRow, silenceRuleOf } from "../desks.ts";
import { indexedBy, itemsOf } from "../dialect.ts";
import type { Sql } from "../sql.ts";

type Row = Omit<WatchedDesk, "silence"> & SilenceRow;

const HAS_PLACE = `SELECT 1 FROM notice_places AS place
  WHERE place.removed_at IS NULL AND place.desk_id`;

export function watching(sql: Sql) {
  return {
    async watched() {
      const rows = await sql.all<Row>(
        `SELECT id, name, differing_duplicates, silence_ms, silence_hours FROM desks
         WHERE archived_at IS NULL AND EXISTS (${HAS_PLACE} = desks.id)`,
      );
      return {
        hasOperator: (await sql.get(`${HAS_PLACE} IS NULL LIMIT 1`)) !== null,
        desks: rows.map(({ id, name, differing_duplicates, ...row }) => ({
          id,
          name,
          differing_duplicates,
          silence: silenceRuleOf(row),
        })),
      };
    },

    newestSignals: (deskIds) =>
      sql.all<{ deskId: number; at: number }>(
        `SELECT * FROM
           (SELECT id AS "deskId",
              (SELECT received_at FROM signals ${indexedBy("signals_desk")}
               WHERE desk_id = desks.id ORDER BY seq DESC LIMIT 1) AS at
            FROM desks WHERE id IN (SELECT CAST(value AS INTEGER) FROM ${itemsOf("$1")} AS wanted)) AS newest
         WHERE at IS NOT NULL`,
        JSON.stringify(deskIds),
      ),
  } satisfies Watching;
}

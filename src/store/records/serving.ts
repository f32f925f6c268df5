/** What a running server reads, but for who has a key. */
import { EXPIRING_SOON_MS } from "../../domain/key/key.ts";
import { damagedId } from "../../domain/signal/hash.ts";
import type { SignalQuery } from "../../domain/signal/stored-signal.ts";
import type { FiguresQuery, StorageFigures } from "../../domain/storage/figures.ts";
import { indexedBy } from "./dialect.ts";
import { EXPIRY, successorId } from "./key-rows.ts";
import { signals } from "./signals/signals.ts";
import type { Sql } from "./sql.ts";

/** With the read keys, which may have no desk. Of `$1`, the present. */
const ACTIVE_KEYS = `api_keys LEFT JOIN desks ON desks.id = api_keys.desk_id
  WHERE api_keys.revoked_at IS NULL AND desks.archived_at IS NULL AND ${EXPIRY} > $1`;

type Totals = Pick<StorageFigures, "desksTotal" | "keysTotal" | "keysExpiring">;

export function serving(sql: Sql, onDamaged: (id: string) => void) {
  const { list, get } = signals(sql);
  const noticing = async <T>(found: Promise<T>): Promise<T> => {
    try {
      return await found;
    } catch (error) {
      onDamaged(damagedId(error));
      throw error;
    }
  };
  return {
    list: (query: SignalQuery) => noticing(list(query)),
    get: (deskId: number | null, id: string) => noticing(get(deskId, id)),

    hasDesks: async () => (await sql.get("SELECT 1 FROM desks LIMIT 1")) !== null,

    async findDeskId(name: string) {
      const desk = await sql.get<{ id: number }>("SELECT id FROM desks WHERE name = $1", name);
      return desk?.id ?? null;
    },

    /** Reads every active key: `docs/metrics.md` says how long that takes. */
    async figures({ now, desksMax, keysMax }: FiguresQuery) {
      const desks = await sql.all<StorageFigures["desks"][number]>(
        `SELECT id, name, created_at AS "createdAt", (SELECT received_at FROM signals ${indexedBy("signals_desk")}
           WHERE desk_id = desks.id ORDER BY seq DESC LIMIT 1) AS "latestSignalAt"
         FROM desks WHERE archived_at IS NULL ORDER BY "latestSignalAt" DESC NULLS LAST, id DESC LIMIT $1`,
        desksMax,
      );
      const keys = await sql.all<StorageFigures["keys"][number]>(
        `SELECT api_keys.id, desks.name AS desk, api_keys.last_used_at AS "lastUsedAt"
         FROM ${ACTIVE_KEYS} AND api_keys.scope = 'send'
         ORDER BY api_keys.last_used_at DESC NULLS LAST, api_keys.id DESC LIMIT $2`,
        now,
        keysMax,
      );
      const totals = await sql.get<Totals>(
        `SELECT (SELECT count(*) FROM desks WHERE archived_at IS NULL) AS "desksTotal",
           count(*) FILTER (WHERE api_keys.scope = 'send') AS "keysTotal",
           count(*) FILTER (WHERE api_keys.expires_at < $2 AND ${successorId("$1")} IS NULL) AS "keysExpiring"
         FROM ${ACTIVE_KEYS}`,
        now,
        now + EXPIRING_SOON_MS,
      );
      return { desks, keys, ...(totals as Totals) };
    },
  };
}

/** What metrics say about the database. */
import type { Database } from "bun:sqlite";
import { stat } from "node:fs/promises";
import { systemCode } from "../../../lib/errors.ts";
import { EXPIRING_SOON_MS } from "../../../domain/key/key.ts";
import type { FiguresQuery, StorageFigures } from "../../../domain/storage/figures.ts";
import { EXPIRY, successorId } from "../../records/key-rows.ts";

type Desks = StorageFigures["desks"];
type Keys = StorageFigures["keys"];
type Totals = Pick<StorageFigures, "desksTotal" | "keysTotal" | "keysExpiring">;
type Sizes = Pick<StorageFigures, "databaseBytes" | "logBytes">;
type Parameters = Record<string, number>;

/** With the read keys, which may have no desk. */
const ACTIVE_KEYS = `api_keys LEFT JOIN desks ON desks.id = api_keys.desk_id
  WHERE api_keys.revoked_at IS NULL AND desks.archived_at IS NULL
    AND ${EXPIRY} > $now`;

/** Runs on the thread that takes signals, and reads every active key: `docs/metrics.md` says how long that takes. */
export function readFigures(
  db: Database,
  { now, desksMax, keysMax }: FiguresQuery,
): Omit<StorageFigures, keyof Sizes> {
  const desks = db
    .query<Desks[number], Parameters>(
      `SELECT id, name, created_at AS createdAt, (SELECT received_at FROM signals INDEXED BY signals_desk
         WHERE desk_id = desks.id ORDER BY seq DESC LIMIT 1) AS latestSignalAt
       FROM desks WHERE archived_at IS NULL ORDER BY latestSignalAt DESC, id DESC LIMIT $desksMax`,
    )
    .all({ desksMax });
  const keys = db
    .query<Keys[number], Parameters>(
      `SELECT api_keys.id, desks.name AS desk, api_keys.last_used_at AS lastUsedAt
       FROM ${ACTIVE_KEYS} AND api_keys.scope = 'send'
       ORDER BY lastUsedAt DESC, api_keys.id DESC LIMIT $keysMax`,
    )
    .all({ now, keysMax });
  const totals = db
    .query<Totals, Parameters>(
      `SELECT (SELECT count(*) FROM desks WHERE archived_at IS NULL) AS desksTotal,
         count(*) FILTER (WHERE api_keys.scope = 'send') AS keysTotal,
         count(*) FILTER (WHERE api_keys.expires_at < $soon AND ${successorId("$now")} IS NULL) AS keysExpiring
       FROM ${ACTIVE_KEYS}`,
    )
    .get({ now, soon: now + EXPIRING_SOON_MS }) as Totals;
  return { desks, keys, ...totals };
}

/** The disk may be slow, but does not keep the thread waiting. */
export async function readSizes(path: string): Promise<Sizes> {
  const [databaseBytes, logBytes] = await Promise.all([bytesOf(path), bytesOf(`${path}-wal`)]);
  return { databaseBytes, logBytes };
}

/** 0 without such a file. */
async function bytesOf(path: string): Promise<number> {
  try {
    return (await stat(path)).size;
  } catch (error) {
    if (systemCode(error) === "ENOENT") return 0;
    throw error;
  }
}

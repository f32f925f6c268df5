/** PostgreSQL, by a URL. Any number of servers may use one database. */
import type { Awaitable } from "../../domain/storage/awaitable.ts";
import type { Engine, Inspected } from "../../domain/storage/engine.ts";
import type { Replication } from "../../domain/storage/storage.ts";
import { UserError } from "../../lib/errors.ts";
import { records } from "../records/records.ts";
import { loadDeviceSecret, sessions } from "../records/sessions.ts";
import { signals } from "../records/signals/signals.ts";
import type { Sql } from "../records/sql.ts";
import { activityIn } from "./activity.ts";
import { explain, isTransient } from "./failures.ts";
import { Pool, WITHOUT_END_MS } from "./pool.ts";
import { hostsOf } from "../../lib/store-url.ts";
import { attemptsIn } from "./shared/attempts.ts";
import { notesIn } from "./shared/notes.ts";
import { explainOpening, prepare } from "./schema.ts";
import { COUNTS_LOCK, postgresSql } from "./sql.ts";
import { openServerStorage } from "./store.ts";
import { verifyWith } from "./copies/verify.ts";

/** Of the console, whose transactions have a connection of their own. */
const CONSOLE_CONNECTIONS_MAX = 6;

async function use<T>(
  url: string,
  work: (pool: Pool) => Promise<T>,
  options: { readonly workMsMax?: number } = {},
): Promise<T> {
  const pool = new Pool(url, { max: 2, ...options });
  try {
    return await work(pool);
  } catch (error) {
    throw isTransient(error) ? explainOpening(error, url) : error;
  } finally {
    await pool.close();
  }
}

function empty(url: string): UserError {
  return new UserError(
    `The database of ${hostsOf(url)} is empty: create a desk`,
    "desk create NAME",
  );
}

function storageOf(pool: Pool, sql: Sql) {
  return {
    ...records(sql),
    signals: signals(sql),
    activity: activityIn(postgresSql(pool, { lock: COUNTS_LOCK })),
    replication: () => sql.get<Replication>(REPLICATION),
  };
}

const REPLICATION = `SELECT coalesce(host(inet_server_addr()), '127.0.0.1') AS host,
  coalesce((SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()), false) AS "isEncrypted",
  current_setting('synchronous_standby_names') <> '' AS "isSynchronous"`;

export const postgresql = {
  files: null,
  hasDatabase: () => true,
  requireDatabase: () => {},
  isLocked: () => false,
  openServerStorage: ({ dataDir, store }, events) =>
    openServerStorage({ dataDir, url: store ?? "" }, events),

  openConsoleStorage: async (url, { now }) => {
    const pool = new Pool(url, { max: CONSOLE_CONNECTIONS_MAX });
    const sql = postgresSql(pool, { now });
    return {
      ...storageOf(pool, sql),
      sessions: sessions(sql, isTransient),
      notes: notesIn(sql),
      attempts: attemptsIn(sql),
      deviceSecret: await loadDeviceSecret(sql),
      whyNotSaved: (error) => (isTransient(error) ? explain(error) : null),
      close: () => pool.close(),
    };
  },

  withStorage: (url, work, { create = false } = {}) =>
    use(url, async (pool) => {
      if (await prepare(pool, url, { create })) return work(storageOf(pool, postgresSql(pool)));
      throw empty(url);
    }),

  inspectStorage: <T>(
    url: string,
    work: (storage: Inspected) => Awaitable<T>,
    { forServer: mustWrite = false }: { readonly forServer?: boolean } = {},
  ) =>
    use(url, async (pool) =>
      (await prepare(pool, url, { create: false, mustWrite }))
        ? work(storageOf(pool, postgresSql(pool)))
        : null,
    ),

  verify: (url: string) =>
    use(
      url,
      async (pool) => {
        if (await prepare(pool, url, { create: false })) {
          return pool.use((pg) => verifyWith(pg, url));
        }
        throw empty(url);
      },
      { workMsMax: WITHOUT_END_MS },
    ),
} satisfies Engine & Record<"verify", unknown>;

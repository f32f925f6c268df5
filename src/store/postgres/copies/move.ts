/** The ends of a copy that are in PostgreSQL. */
import { decodeTime } from "ulid";
import { UserError } from "../../../lib/errors.ts";
import { placeName } from "../../../lib/place.ts";
import { insertOf, type Source, type Target } from "../../records/copy/ends.ts";
import { toJson } from "../../records/copy/rows.ts";
import type { Reader, Sql, Tx } from "../../records/sql.ts";
import { completeBlocks } from "../blocks.ts";
import type { Pg } from "../connect.ts";
import { Pool, WITHOUT_END_MS } from "../pool.ts";
import { describeFailure, hasCode, isAboutOneRow, isTransient } from "../failures.ts";
import { prepare, withoutRights } from "../schema.ts";
import { postgresSql, query, reading } from "../sql.ts";
import { verifyWith } from "./verify.ts";

/** For the connection of a process that has just ended. */
const OTHERS_MS_MAX = 5_000;

const OTHERS = `SELECT count(*) AS count FROM pg_stat_activity
  WHERE datname = current_database() AND pid <> pg_backend_pid() AND application_name LIKE 'signalbox%'
    AND backend_type = 'client backend'`;

/** Conflicts with every change, and with no read. */
const LOCK =
  "LOCK TABLE turn, desks, api_keys, members, invitations, passkeys, audit, notice_places, notice_deliveries, notice_troubles, signals IN EXCLUSIVE MODE";

const RESTORE = "restore it from a backup, and check that with signalbox verify --store URL";
const MAKE_ANOTHER =
  "drop it, and make an empty one with createdb --template=template0 --encoding=UTF8 NAME";

/** Nothing changes the database until `work` is done, not even a server that is started meanwhile. */
export async function fromPostgres<T>(
  url: string,
  work: (source: Source) => Promise<T>,
): Promise<T> {
  return withPool(url, RESTORE, async (pool) => {
    if (!(await prepare(pool, url, { create: false }))) {
      throw new UserError(`The database of ${placeName(url)} is empty: there is nothing to copy.`);
    }
    await refuseOthers(postgresSql(pool), url);
    // If the connection is lost, this fails as a whole.
    return pool.use((pg) =>
      pg.begin("isolation level repeatable read", (tx) =>
        workLocked(tx as unknown as Pg, url, work),
      ),
    ) as Promise<T>;
  });
}

async function workLocked<T>(
  pg: Pg,
  url: string,
  work: (source: Source) => Promise<T>,
): Promise<T> {
  await pg.unsafe(
    "SET LOCAL lock_timeout = '5s'; SET LOCAL idle_in_transaction_session_timeout = 0",
  );
  await pg.unsafe(LOCK);
  const sql = { ...reading((text, values) => query(pg, text, values)), now: Date.now() };
  return work({ name: placeName(url), sql, refuseWaiting: () => refuseOthers(sql, url) });
}

export async function toPostgres<T>(url: string, work: (target: Target) => Promise<T>): Promise<T> {
  return withPool(url, MAKE_ANOTHER, async (pool) => {
    await prepare(pool, url, { create: true, copying: true });
    const sql = postgresSql(pool);
    await refuseOthers(sql, url);
    await begin(sql, url);
    return work(targetOf(pool, sql, url));
  });
}

/** `ifIncomplete`: what to do if a table is missing. */
async function withPool<T>(
  url: string,
  ifIncomplete: string,
  work: (pool: Pool) => Promise<T>,
): Promise<T> {
  const pool = new Pool(url, { max: 1, workMsMax: WITHOUT_END_MS });
  try {
    return await work(pool);
  } catch (error) {
    throw explain(error, url, ifIncomplete);
  } finally {
    await pool.close();
  }
}

async function refuseOthers(sql: Reader, url: string): Promise<void> {
  const end = performance.now() + OTHERS_MS_MAX;
  while ((await sql.get<{ count: number }>(OTHERS))?.count !== 0) {
    if (performance.now() > end) {
      throw new UserError(
        `Another signalbox is connected to ${placeName(url)}: stop all servers that use it, and run no other command meanwhile.`,
      );
    }
    await Bun.sleep(200);
  }
}

function explain(error: unknown, url: string, ifIncomplete: string): unknown {
  if (hasCode(error, /^55P03$/)) {
    return new UserError(
      `Another program is changing ${placeName(url)}: end it, then type the same again.`,
    );
  }
  if (isAboutOneRow(error)) {
    return new UserError(
      `${placeName(url)} refuses a row (${describeFailure(error)}): check the source with signalbox verify.`,
    );
  }
  if (hasCode(error, /^42501$/)) return withoutRights(url, describeFailure(error));
  if (hasCode(error, /^42P01$/)) {
    return new UserError(
      `The database of ${placeName(url)} lacks a table (${describeFailure(error)}): ${ifIncomplete}.`,
    );
  }
  if (!isTransient(error)) return error;
  return new UserError(
    `${placeName(url)} does not answer (${describeFailure(error)}): when it does, type the same signalbox copy again, and it goes on.`,
  );
}

/** Marks an empty database as one that a copy is being made in. */
async function begin(sql: Sql, url: string): Promise<void> {
  const state = await sql.get<{ copying: boolean; used: boolean }>(
    "SELECT copying, EXISTS (SELECT FROM desks) OR EXISTS (SELECT FROM api_keys) AS used FROM signalbox",
  );
  if (state?.copying === true) return;
  if (state?.used === true) {
    throw new UserError(
      `The database of ${placeName(url)} has desks or keys already: name an empty one, made with createdb.`,
    );
  }
  await setCopying(sql, true);
}

async function setCopying(sql: Sql, copying: boolean): Promise<void> {
  await sql.transaction((tx) => tx.run(`UPDATE signalbox SET copying = ${copying}`));
}

function targetOf(pool: Pool, sql: Sql, url: string): Target {
  const types = new Map<string, Map<string, string>>();
  return {
    name: placeName(url),
    sql,
    numbersSignals: false,

    async write(tx, table, rows, key) {
      const known = types.get(table) ?? (await typesOf(tx, table));
      types.set(table, known);
      const columns = Object.keys(rows[0] ?? {});
      const typed = columns.map((column) => `${column} ${known.get(column)}`).join(", ");
      const values = `SELECT ${columns.join(", ")} FROM json_to_recordset($1::text::json) AS row (${typed})`;
      await tx.run(insertOf(table, columns, values, key), toJson(rows, columns));
    },

    async complete() {
      const last = await setNext(sql);
      await completeBlocks(sql, last);
      // Its planner would know nothing of so many new rows for a minute.
      await pool.use((pg) => pg.unsafe("ANALYZE"));
    },

    async finish() {
      const verification = await pool.use((pg) => verifyWith(pg, url));
      if (verification.ok) await setCopying(sql, false);
      return verification;
    },
  };
}

async function typesOf(tx: Tx, table: string): Promise<Map<string, string>> {
  const columns = await tx.all<{ name: string; type: string }>(
    `SELECT column_name AS name, data_type AS type FROM information_schema.columns
     WHERE table_schema = current_schema() AND table_name = $1`,
    table,
  );
  return new Map(columns.map(({ name, type }) => [name, type]));
}

/**
 * The next rows and ids follow those that were copied. Ids made on SQLite have other digits after the time. Returns the
 * last `seq`.
 */
async function setNext(sql: Sql): Promise<number> {
  const newest = await sql.get<{ id: string; seq: number }>(
    "SELECT id, seq FROM signals ORDER BY seq DESC LIMIT 1",
  );
  await sql.transaction(async (tx) => {
    if (newest !== null) {
      await tx.run(
        "UPDATE turn SET seq = $1, last_ms = greatest(last_ms, $2)",
        newest.seq,
        decodeTime(newest.id) + 1,
      );
    }
    for (const table of ["desks", "audit"]) {
      await tx.all(
        `SELECT setval(pg_get_serial_sequence('${table}', 'id'), max(id)) FROM ${table} HAVING max(id) IS NOT NULL`,
      );
    }
  });
  return newest?.seq ?? 0;
}

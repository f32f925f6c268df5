/** PostgreSQL behind the port of the records. */
import type postgres from "postgres";
import type { Reader, Sql, Tx, Value } from "../records/sql.ts";
import type { Pg } from "./connect.ts";
import type { Pool } from "./pool.ts";
import { toPostgres } from "./dialect.ts";

/**
 * Changes of all servers follow one another, as on SQLite: what a change has read holds until its commit. Batches of
 * signals do not wait for this lock.
 */
const CHANGES_LOCK = 0x53425831;
/** What is counted or summarized may take longer than people wait for a change. */
export const COUNTS_LOCK = 0x53425833;

interface Options {
  readonly now?: () => number;
  /** Returns the error that a failed read throws instead. */
  readonly explain?: (error: unknown) => unknown;
  /** Which transactions of all servers follow one another. */
  readonly lock?: number;
}

export function postgresSql(
  pool: Pool,
  { now = Date.now, explain, lock = CHANGES_LOCK }: Options = {},
): Sql {
  return {
    ...reading((sql, values) => pool.use((pg) => query(pg, sql, values)), explain),
    get now() {
      return now();
    },
    transaction: <T>(work: (tx: Tx) => Promise<T>) =>
      pool.use((pg) =>
        pg.begin((tx) => change(tx as unknown as Pg, { now, lock }, work)),
      ) as Promise<T>,
  };
}

async function change<T>(
  pg: Pg,
  { now, lock }: Required<Pick<Options, "now" | "lock">>,
  work: (tx: Tx) => Promise<T>,
): Promise<T> {
  const run: Run = (sql, values) => query(pg, sql, values);
  await run("SELECT pg_advisory_xact_lock($1)", [lock]);
  return work({
    ...reading(run),
    now: now(),
    run: async (sql, ...values) => (await run(sql, values)).count,
  });
}

type Run = (sql: string, values: readonly Value[]) => PromiseLike<postgres.RowList<postgres.Row[]>>;

export function reading(run: Run, explain = (error: unknown) => error): Omit<Reader, "now"> {
  const read = async <Row>(sql: string, values: readonly Value[]): Promise<Row[]> => {
    try {
      return (await run(sql, values)) as unknown as Row[];
    } catch (error) {
      throw explain(error);
    }
  };
  return {
    all: async <Row>(sql: string, ...values: Value[]) => [...(await read<Row>(sql, values))],
    get: async <Row>(sql: string, ...values: Value[]) => (await read<Row>(sql, values))[0] ?? null,
  };
}

export function query(pg: Pg, sql: string, values: readonly Value[]) {
  const stored = values.map(storable) as (string | number | Uint8Array<ArrayBuffer> | null)[];
  return pg.unsafe(toPostgres(sql), stored, { prepare: true });
}

/** PostgreSQL has no U+0000 in texts. No stored text has a control character, so another one finds as little. */
function storable(value: Value): Value {
  return typeof value === "string" ? value.replaceAll("\0", "\u0001") : value;
}

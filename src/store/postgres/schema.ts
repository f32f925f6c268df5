/** Makes the tables in an empty database, and refuses one that must not be used. */
import { UserError } from "../../lib/errors.ts";
import schemaSql from "../../../schema.postgresql.sql" with { type: "text" };
import type { Pg } from "./connect.ts";
import type { Pool } from "./pool.ts";
import { describeFailure, explain, hasCode, isTransient, isUntrusted } from "./failures.ts";
import { hostsOf } from "../../lib/store-url.ts";

export const VERSION = 1;

/** One server at a time makes or upgrades the tables. */
const SCHEMA_LOCK = 0x53425832;

interface State {
  readonly encoding: string;
  readonly isStandby: boolean;
  readonly fsync: string;
  readonly fullPageWrites: string;
  /** Of ours: null if there are none. */
  readonly tables: string | null;
  readonly others: number;
  readonly mayCreate: boolean;
  /** A schema with such tables that is not in the user's `search_path`. */
  readonly elsewhere: string | null;
}

const OWN = "make it the owner of the database, in psql: ALTER DATABASE NAME OWNER TO USER";
const GRANT =
  "as the owner of the tables, type in psql: GRANT ALL ON SCHEMA public TO USER; GRANT ALL ON ALL TABLES IN SCHEMA public TO USER; GRANT ALL ON ALL SEQUENCES IN SCHEMA public TO USER";

const STATE = `SELECT current_setting('server_encoding') AS encoding, pg_is_in_recovery() AS "isStandby",
  current_setting('fsync') AS fsync, current_setting('full_page_writes') AS "fullPageWrites",
  to_regclass('signalbox')::text AS tables,
  (SELECT count(*) FROM pg_tables WHERE schemaname = current_schema()) AS others,
  coalesce(has_schema_privilege(current_schema(), 'CREATE'), false) AS "mayCreate",
  (SELECT min(schemaname) FROM pg_tables WHERE tablename = 'signalbox') AS elsewhere`;

/** What a server cannot do without: the first that is missing. */
const MISSING = `SELECT privilege || ' on ' || name AS missing
  FROM (VALUES ('turn', 'UPDATE'), ('signals', 'SELECT'), ('signals', 'INSERT'), ('signal_blocks', 'INSERT'),
    ('desks', 'UPDATE'), ('api_keys', 'UPDATE'), ('audit', 'INSERT'), ('sessions', 'INSERT'), ('attempts', 'INSERT'),
    ('notes', 'DELETE'), ('counts', 'UPDATE'), ('notice_deliveries', 'DELETE')) AS needed (name, privilege)
  WHERE NOT has_table_privilege(to_regclass(name), privilege) LIMIT 1`;

interface PrepareOptions {
  /** Makes the tables if the database is empty. */
  readonly create: boolean;
  /** Refuses what a server could not write, or make. */
  readonly mustWrite?: boolean;
  /** A copy into it may be incomplete. */
  readonly copying?: boolean;
}

/** Returns whether the database has the tables. Throws `UserError` if the database cannot be used. */
export async function prepare(
  pool: Pool,
  url: string,
  { create, mustWrite = create, copying = false }: PrepareOptions,
): Promise<boolean> {
  try {
    return await pool.use((pg) => prepareOn(pg, url, { create, mustWrite, copying }));
  } catch (error) {
    throw explainOpening(error, url);
  }
}

async function prepareOn(
  pg: Pg,
  url: string,
  { create, mustWrite, copying }: Required<PrepareOptions>,
): Promise<boolean> {
  const [state] = await pg.unsafe<State[]>(STATE);
  if (state === undefined) throw new Error("the database says nothing of its state");
  refuseUnsafe(state, url);
  if (state.tables !== null) {
    await refuseOtherVersion(pg, url, copying);
    const [row] = mustWrite ? await pg.unsafe<{ missing: string }[]>(MISSING) : [];
    if (row !== undefined) throw withoutRights(url, `no ${row.missing}`);
    return true;
  }
  if (state.elsewhere !== null) {
    throw new UserError(
      `The tables of ${hostsOf(url)} are in the schema ${state.elsewhere}, where the user of --store does not look: add it to the user's search_path, with ALTER ROLE, or grant USAGE on it.`,
    );
  }
  if (state.others > 0) {
    throw new UserError(
      `The database of ${hostsOf(url)} has tables of another program, and was left as it is: create one for Signalbox, with createdb, and name that.`,
    );
  }
  if (mustWrite && !state.mayCreate) throw withoutRights(url, "no CREATE on a schema", OWN);
  if (create) await createTables(pg);
  return create;
}

function refuseUnsafe({ encoding, isStandby, fsync, fullPageWrites }: State, url: string): void {
  const name = hostsOf(url);
  if (encoding !== "UTF8") {
    throw new UserError(
      `The database of ${name} has the encoding ${encoding}: create one with UTF-8: createdb --template=template0 --encoding=UTF8 NAME`,
    );
  }
  if (isStandby) {
    throw new UserError(
      `${name} is a standby, which cannot be written: name the primary, or all hosts of the cluster.`,
    );
  }
  const off = fsync === "off" ? "fsync" : fullPageWrites === "off" ? "full_page_writes" : null;
  if (off !== null) {
    throw new UserError(
      `The server of ${name} runs with ${off} = off, so a power cut would lose acknowledged signals: turn it on: ALTER SYSTEM SET ${off} = on`,
    );
  }
}

async function refuseOtherVersion(pg: Pg, url: string, copying: boolean): Promise<void> {
  const [row] = await pg.unsafe<{ version: number; copying: boolean }[]>("SELECT * FROM signalbox");
  if (row?.version === VERSION && (copying || !row.copying)) return;
  if (row?.version === VERSION) {
    throw new UserError(
      `A copy into the database of ${hostsOf(url)} is not complete: type the same signalbox copy again, and it goes on.`,
    );
  }
  throw new UserError(
    `The database of ${hostsOf(url)} has version ${row?.version ?? "?"}, and this signalbox knows ${VERSION}: use a newer signalbox.`,
  );
}

async function createTables(pg: Pg): Promise<void> {
  await pg.begin(async (tx) => {
    await tx.unsafe("SELECT pg_advisory_xact_lock($1)", [SCHEMA_LOCK]);
    // Another server may have made them meanwhile, which `to_regclass` would not notice.
    const [found] = await tx.unsafe("SELECT 1 FROM pg_tables WHERE tablename = 'signalbox'");
    if (found === undefined) await tx.unsafe(schemaSql);
  });
}

/** Explains in one sentence why the database cannot be used. */
export function explainOpening(error: unknown, url: string): unknown {
  if (error instanceof UserError) return error;
  const name = hostsOf(url);
  const said = describeFailure(error);
  if (hasCode(error, /^28/)) {
    return new UserError(
      `${name} refuses the user or password of --store (${said}): check both, and pg_hba.conf there.`,
    );
  }
  if (hasCode(error, /^3D000$/)) {
    return new UserError(
      `There is no such database on ${name} (${said}): create it with createdb.`,
    );
  }
  if (hasCode(error, /^(42501|3F000)$/)) {
    return withoutRights(url, said);
  }
  if (hasCode(error, /^42P01$/)) {
    return new UserError(
      `The database of ${name} lacks a table (${said}): restore it, or create a desk in an empty one.`,
    );
  }
  if (isUntrusted(error)) {
    return new UserError(
      `The certificate of ${name} is not trusted (${said}): name its authority in the URL of --store, with sslrootcert=FILE, or correct the certificate.`,
    );
  }
  if (!isTransient(error)) return error;
  const why = explain(error);
  if (why !== explain(null)) {
    return new UserError(`${name}: ${why} (${said}).`);
  }
  return new UserError(
    `The database of ${name} does not answer (${said}): start it, or check the address in --store.`,
  );
}

export function withoutRights(url: string, said: string, next = GRANT): UserError {
  return new UserError(
    `The user in the URL may not make or use the tables of ${hostsOf(url)} (${said}): ${next}`,
  );
}

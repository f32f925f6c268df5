/**
 * PostgreSQL at its defaults, in a cluster of its own: the same columns and one unique index. It has no
 * other index and no foreign keys, which is in its favour. One commit per signal.
 */
import { existsSync, mkdirSync, readdirSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { WARM_UP_SECONDS } from "../cell.ts";
import { freePort, run, startServer } from "../process.ts";
import { FILL_MS_MAX, writeBack } from "../stored.ts";
import { missing, note } from "../tools.ts";

export const POSTGRESQL_CLIENTS = 64;

/** The version of the goal; if it is not installed, the newest is used. */
const MAJOR = "15";
/** Debian installs each major version in a folder here. */
const DEBIAN_FOLDER = "/usr/lib/postgresql";
const PGBENCH_THREADS = 1;
/** pgbench connects within its time, but leaves that out of the rate. Starting 64 backends takes 2 s on a busy machine. */
const CONNECT_SECONDS = 2;
const GRACE_MS = 60_000;
const ROOT = 0;

const table = `CREATE TABLE signals (
  seq bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, id text NOT NULL, desk_id integer NOT NULL,
  key_id text NOT NULL, received_at bigint NOT NULL, client_signal_id text, source text NOT NULL,
  type text NOT NULL, symbol text NOT NULL, side text NOT NULL, direction text, price double precision,
  quantity double precision, signal_time bigint, metadata text)`;
const uniqueIndex = "CREATE UNIQUE INDEX signals_client_id ON signals (desk_id, client_signal_id)";

const columns = `id, desk_id, key_id, received_at, client_signal_id, source, type, symbol, side, direction, price,
  quantity, signal_time, metadata`;
const values = `'01K5QZ8F3V9X2M7T4B6N1C0D8E', 1, '01K5QZ8F3V9X2M7T4B6N1C0D8E',
  (extract(epoch FROM clock_timestamp()) * 1000)::bigint, gen_random_uuid()::text, 'venue_2', 'crypto',
  'BTC/USDT', 'open', 'long', 64250.5, 0.25, 1790000000000, '{"take_profit":66000,"stop_loss":63000}'`;
const insert = `INSERT INTO signals (${columns}) VALUES (${values})
ON CONFLICT (desk_id, client_signal_id) DO NOTHING;`;

type Found = { readonly missing: null; readonly bin: string } | { readonly missing: string };

export function findPostgresql(): Found & { readonly missing: string | null } {
  const versions = existsSync(DEBIAN_FOLDER) ? readdirSync(DEBIAN_FOLDER) : [];
  const newestFirst = versions.toSorted((a, b) => Number(b) - Number(a));
  const candidates = [MAJOR, ...newestFirst].map((one) => join(DEBIAN_FOLDER, one, "bin"));
  const bin = candidates.find((folder) =>
    ["initdb", "postgres", "pgbench"].every((name) => existsSync(join(folder, name))),
  );
  if (bin === undefined) return { missing: missing("PostgreSQL", "postgresql") };
  return { missing: null, bin };
}

/** Throws if the table does not have as many rows as were acknowledged. A cluster with rows is kept for later runs. */
export async function measurePostgresql(
  { folder, keepFolder }: { folder: string; keepFolder: string },
  { seconds, quick, rows }: { seconds: number; quick: boolean; rows: number },
): Promise<{ version: string; rate: number }> {
  const found = findPostgresql();
  if (found.missing !== null) throw new Error(found.missing);
  const home = rows === 0 ? join(folder, "postgresql") : join(keepFolder, `${rows}-postgresql`);
  try {
    if (!existsSync(home)) await makeCluster(found.bin, home, rows);
    const cluster = await startCluster(found.bin, home);
    const before = Number(await cluster.ask("SELECT count(*) FROM signals"));
    const warmUp = await pgbench(cluster, home, quick ? 1 : WARM_UP_SECONDS);
    const { rate, transactions } = await pgbench(cluster, home, seconds);
    const stored = Number(await cluster.ask("SELECT count(*) FROM signals")) - before;
    const version = await cluster.ask("SHOW server_version");
    await cluster.stop();
    const acknowledged = warmUp.transactions + transactions;
    if (stored !== acknowledged) {
      throw new Error(`PostgreSQL acknowledged ${acknowledged} signals and stored ${stored}`);
    }
    return { version: `PostgreSQL ${version.split(" ", 1)[0]}`, rate };
  } finally {
    if (rows === 0) rmSync(home, { recursive: true, force: true });
  }
}

/** The unique index is created after the rows are there, which is much faster. */
async function makeCluster(bin: string, home: string, rows: number): Promise<void> {
  if (rows > 0) note(`  filling ${home} with ${rows.toLocaleString("en-US")} rows`);
  const partial = `${home}.partial`;
  rmSync(partial, { recursive: true, force: true });
  mkdirSync(partial);
  const asUser = await giveTo(partial);
  const flags = ["--username", "bench", "--auth", "trust", "--encoding", "UTF8", "--locale", "C"];
  await run([...asUser, join(bin, "initdb"), "-D", join(partial, "data"), ...flags], { cwd: "/" });
  writeFileSync(join(partial, "insert.sql"), insert);
  const cluster = await startCluster(bin, partial);
  await cluster.ask(table);
  const fill = `INSERT INTO signals (${columns}) SELECT ${values} FROM generate_series(1, ${rows})`;
  for (const statement of [fill, uniqueIndex, "VACUUM ANALYZE", "CHECKPOINT"]) {
    await cluster.ask(statement);
  }
  await cluster.stop();
  await writeBack();
  renameSync(partial, home);
}

export interface Cluster {
  readonly pgbench: string[];
  /** Of the database for Signalbox. */
  readonly url: string;
  /** Returns the result of a statement. */
  ask(sql: string, database?: string): Promise<string>;
  readonly stop: () => Promise<void>;
}

/** A cluster with an empty database for Signalbox beside the peer's table with `rows`. It is removed afterwards. */
export async function withCluster<T>(
  folder: string,
  rows: number,
  work: (cluster: Cluster, home: string) => Promise<T>,
): Promise<T> {
  const found = findPostgresql();
  if (found.missing !== null) throw new Error(found.missing);
  const home = join(folder, "cluster");
  try {
    await makeCluster(found.bin, home, rows);
    const cluster = await startCluster(found.bin, home);
    await cluster.ask("CREATE DATABASE signalbox");
    const result = await work(cluster, home);
    await cluster.stop();
    return result;
  } finally {
    rmSync(home, { recursive: true, force: true });
  }
}

async function startCluster(bin: string, home: string): Promise<Cluster> {
  const port = freePort();
  const connect = ["-h", "127.0.0.1", "-p", String(port), "-U", "bench"];
  const listen = ["-c", "listen_addresses=127.0.0.1", "-c", "unix_socket_directories="];
  const server = [join(bin, "postgres"), "-D", join(home, "data"), "-p", String(port), ...listen];
  const { stop } = await startServer([...(await giveTo(home)), ...server], {
    isReady: () => run([join(bin, "pg_isready"), ...connect]),
    logFile: join(home, "log"),
    // SIGKILL would leave its shared memory behind.
    killSignal: "SIGQUIT",
  });
  const psql = [join(bin, "psql"), ...connect, "-At"];
  return {
    pgbench: [join(bin, "pgbench"), ...connect],
    url: `postgres://bench@127.0.0.1:${port}/signalbox`,
    ask: async (sql, database = "postgres") =>
      (await run([...psql, database, "-c", sql], { msMax: FILL_MS_MAX })).stdout.trim(),
    stop,
  };
}

/** PostgreSQL refuses to run as root: then the folder belongs to the user of its Debian package. */
async function giveTo(home: string): Promise<string[]> {
  if (process.getuid?.() !== ROOT) return [];
  await run(["chown", "postgres:postgres", home]);
  return ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups"];
}

interface Transactions {
  readonly rate: number;
  readonly transactions: number;
}

export async function pgbench(
  { pgbench: program }: Cluster,
  home: string,
  seconds: number,
): Promise<Transactions> {
  const clients = ["-c", String(POSTGRESQL_CLIENTS), "-j", String(PGBENCH_THREADS)];
  const time = ["-T", String(CONNECT_SECONDS + seconds)];
  const flags = ["-M", "prepared", ...time, "--no-vacuum", "postgres"];
  const command = [...program, "-f", join(home, "insert.sql"), ...clients, ...flags];
  const { stdout } = await run(command, { msMax: seconds * 1_000 + GRACE_MS });
  const rate = Number(/^tps = ([\d.]+)/m.exec(stdout)?.[1]);
  const transactions = Number(
    /^number of transactions actually processed: (\d+)/m.exec(stdout)?.[1],
  );
  if (!(rate > 0 && transactions > 0)) throw new Error(`pgbench gave no rate: ${stdout}`);
  return { rate, transactions };
}

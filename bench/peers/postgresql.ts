/**
 * PostgreSQL as it comes, in a new cluster: the same columns, the unique index that deduplication needs,
 * and no index or reference more, in its favour. A commit a signal, as `synchronous_commit` has it.
 */
import { existsSync, mkdirSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { freePort, run, startServer } from "../process.ts";
import { missing } from "../tools.ts";

export const POSTGRESQL_CLIENTS = 64;

/** The one of the goal; where it is not installed, the newest. */
const MAJOR = "15";
/** Where Debian has them, a folder for each major version. */
const DEBIAN_FOLDER = "/usr/lib/postgresql";
const PGBENCH_THREADS = 1;
const WARM_UP_SECONDS = 1;
const GRACE_MS = 60_000;
const ROOT = 0;

const schema = `CREATE TABLE signals (
  seq bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, id text NOT NULL, desk_id integer NOT NULL,
  key_id text NOT NULL, received_at bigint NOT NULL, client_signal_id text, source text NOT NULL,
  type text NOT NULL, symbol text NOT NULL, side text NOT NULL, direction text, price double precision,
  quantity double precision, signal_time bigint, metadata text);
CREATE UNIQUE INDEX signals_client_id ON signals (desk_id, client_signal_id);`;

const insert = `INSERT INTO signals (id, desk_id, key_id, received_at, client_signal_id, source, type, symbol, side,
  direction, price, quantity, signal_time, metadata)
VALUES ('01K5QZ8F3V9X2M7T4B6N1C0D8E', 1, '01K5QZ8F3V9X2M7T4B6N1C0D8E',
  (extract(epoch FROM clock_timestamp()) * 1000)::bigint, gen_random_uuid()::text, 'venue_2', 'crypto',
  'BTC/USDT', 'open', 'long', 64250.5, 0.25, 1790000000000, '{"take_profit":66000,"stop_loss":63000}')
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

/** Throws where the table has not as many rows as were acknowledged. */
export async function measurePostgresql(
  folder: string,
  seconds: number,
): Promise<{ version: string; rate: number }> {
  const found = findPostgresql();
  if (found.missing !== null) throw new Error(found.missing);
  const program = (name: string): string => join(found.bin, name);
  const port = freePort();
  const home = join(folder, "postgresql");
  mkdirSync(home);
  try {
    const asUser = await giveTo(home);
    const dataDir = join(home, "data");
    const trust = ["--username", "bench", "--auth", "trust", "--encoding", "UTF8"];
    await run([...asUser, program("initdb"), "-D", dataDir, "--locale", "C", ...trust], {
      cwd: "/",
    });
    const connect = ["-h", "127.0.0.1", "-p", String(port), "-U", "bench"];
    const listen = ["-c", "listen_addresses=127.0.0.1", "-c", "unix_socket_directories="];
    const server = [program("postgres"), "-D", dataDir, "-p", String(port), ...listen];
    const running = await startServer([...asUser, ...server], {
      isReady: () => run([program("pg_isready"), ...connect]),
      logFile: join(folder, "postgresql.log"),
      // Killed harder it would leave its shared memory behind.
      killSignal: "SIGQUIT",
    });
    const ask = async (sql: string): Promise<string> =>
      (await run([program("psql"), ...connect, "-Atc", sql, "postgres"])).stdout.trim();
    await ask(schema);
    const script = join(home, "insert.sql");
    writeFileSync(script, insert);
    const bench = (time: number): Promise<Transactions> =>
      pgbench([program("pgbench"), ...connect, "-f", script], time);
    const warmUp = await bench(WARM_UP_SECONDS);
    const { rate, transactions } = await bench(seconds);
    const stored = Number(await ask("SELECT count(*) FROM signals"));
    const version = await ask("SHOW server_version");
    await running.stop();
    const acknowledged = warmUp.transactions + transactions;
    if (stored !== acknowledged) {
      throw new Error(`PostgreSQL acknowledged ${acknowledged} signals and stored ${stored}`);
    }
    return { version: `PostgreSQL ${version.split(" ", 1)[0]}`, rate };
  } finally {
    rmSync(home, { recursive: true, force: true });
  }
}

/** PostgreSQL refuses to run as root: then its Debian package's user has the folder. */
async function giveTo(home: string): Promise<string[]> {
  if (process.getuid?.() !== ROOT) return [];
  await run(["chown", "postgres:postgres", home]);
  return ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups"];
}

interface Transactions {
  readonly rate: number;
  readonly transactions: number;
}

async function pgbench(command: string[], seconds: number): Promise<Transactions> {
  const clients = ["-c", String(POSTGRESQL_CLIENTS), "-j", String(PGBENCH_THREADS)];
  const flags = [...clients, "-M", "prepared", "-T", String(seconds), "--no-vacuum", "postgres"];
  const { stdout } = await run([...command, ...flags], { msMax: seconds * 1_000 + GRACE_MS });
  const rate = Number(/^tps = ([\d.]+)/m.exec(stdout)?.[1]);
  const transactions = Number(
    /^number of transactions actually processed: (\d+)/m.exec(stdout)?.[1],
  );
  if (!(rate > 0 && transactions > 0)) throw new Error(`pgbench gave no rate: ${stdout}`);
  return { rate, transactions };
}

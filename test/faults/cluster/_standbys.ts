/** A primary with two synchronous standbys, without Patroni: the test decides who is stopped and promoted. */
import { chownSync } from "node:fs";
import { join } from "node:path";
import postgres from "postgres";
import { freePort } from "../../kit/cli.ts";
import { onCleanup, temporaryFolder, until } from "../../kit/setup.ts";
import { BIN, postgresUser } from "./_postgresql.ts";

export interface Server {
  readonly port: number;
  readonly start: () => Promise<void>;
  readonly kill: () => Promise<void>;
  readonly promote: () => void;
  /** Runs one statement. */
  readonly query: (sql: string) => Promise<Record<string, unknown>[]>;
}

export interface Trio {
  readonly primary: Server;
  readonly standbys: readonly [Server, Server];
  /** With all hosts, as `--store` takes it. */
  readonly url: string;
}

export async function startTrio(): Promise<Trio> {
  const root = temporaryFolder();
  const owner = postgresUser();
  chownSync(root, owner, owner);
  const primary = await createServer(root, "primary", [
    "-c",
    "synchronous_standby_names=ANY 1 (a, b)",
  ]);
  run("initdb", "-D", join(root, "primary"), "-U", "postgres", "-A", "trust", "-E", "UTF8");
  await primary.start();
  const standbys = [await createServer(root, "a"), await createServer(root, "b")] as const;
  for (const [index, name] of ["a", "b"].entries()) {
    const from = `host=127.0.0.1 port=${primary.port} user=postgres application_name=${name}`;
    run("pg_basebackup", "-D", join(root, name), "-R", "-X", "stream", "-c", "fast", "-d", from);
    await standbys[index]?.start();
  }
  await until(async () => (await primary.query(STREAMING)).length === 2);
  await primary.query("CREATE DATABASE signalbox");
  const hosts = [primary, ...standbys].map(({ port }) => `127.0.0.1:${port}`).join(",");
  return { primary, standbys, url: `postgres://postgres@${hosts}/signalbox` };
}

const STREAMING = "SELECT 1 FROM pg_stat_replication WHERE state = 'streaming'";

function run(program: string, ...words: readonly string[]): void {
  const command = ["runuser", "-u", "postgres", "--", join(BIN, program), ...words];
  const { exitCode, stderr } = Bun.spawnSync(command, { cwd: "/" });
  if (exitCode !== 0) throw new Error(`${program}: ${stderr.toString()}`);
}

async function createServer(
  root: string,
  name: string,
  more: readonly string[] = [],
): Promise<Server> {
  const data = join(root, name);
  const port = await freePort();
  let child: Bun.Subprocess | null = null;
  const connect = () =>
    postgres({
      host: "127.0.0.1",
      port,
      user: "postgres",
      max: 1,
      backoff: false,
      onnotice: () => {},
    });
  const query = async (sql: string) => {
    const pg = connect();
    try {
      return [...(await pg.unsafe(sql))];
    } finally {
      await pg.end({ timeout: 1 });
    }
  };
  const kill = async (): Promise<void> => {
    // The first process; the others end when they notice.
    child?.kill("SIGKILL");
    await child?.exited;
  };
  onCleanup(kill);
  return {
    port,
    kill,
    query,
    async start() {
      const flags = ["-D", data, "-p", String(port), "-k", root, "-h", "127.0.0.1", ...more];
      child = Bun.spawn(
        [
          "setpriv",
          "--reuid",
          "postgres",
          "--regid",
          "postgres",
          "--init-groups",
          join(BIN, "postgres"),
          ...flags,
        ],
        {
          cwd: "/",
          stdio: ["ignore", "ignore", "ignore"],
        },
      );
      await until(async () => {
        if (child?.exitCode !== null) throw new Error(`PostgreSQL ${name} has ended`);
        return query("SELECT 1").then(
          () => true,
          () => false,
        );
      });
    },
    promote: () => run("pg_ctl", "promote", "-D", data),
  };
}

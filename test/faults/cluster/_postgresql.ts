/** Three PostgreSQL servers under Patroni, with etcd and synchronous replication: see docs/scale.md. */
import { chmodSync, chownSync, mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { temporaryFolder, until } from "../../kit/setup.ts";
import { createNetwork, type Host, type Process } from "./_network.ts";

const DEBIAN = "/usr/lib/postgresql";
/** The newest. */
export const BIN = `${DEBIAN}/${readdirSync(DEBIAN)
  .toSorted((a, b) => Number(a) - Number(b))
  .at(-1)}/bin`;
const PASSWORD = "for-tests";

export interface Member {
  readonly host: Host;
  readonly patroni: () => Process;
  readonly etcd: () => Process;
  readonly startPatroni: () => void;
  readonly startEtcd: () => void;
  readonly folder: string;
}

export interface Cluster {
  readonly network: ReturnType<typeof createNetwork>;
  readonly members: readonly Member[];
  /** With all hosts, as `--store` takes it. */
  readonly url: string;
  /** By what Patroni says; null while there is none. */
  readonly primary: () => Promise<Member | null>;
  /** Resolves when there is a primary to which all others are connected, one of them synchronously. */
  readonly settled: () => Promise<Member>;
  readonly switchOver: () => Promise<void>;
}

export const postgresUser = (): number =>
  Number(Bun.spawnSync(["id", "-u", "postgres"]).stdout.toString().trim() || Number.NaN);

export async function startCluster(prefix: string): Promise<Cluster> {
  // Removed after the programs that write to it have ended.
  const root = temporaryFolder();
  chmodSync(root, 0o755);
  const network = createNetwork(prefix);
  const hosts = ["p1", "p2", "p3"].map((name) => network.host(name));
  const members = hosts.map((host) => createMember(host, hosts, join(root, host.name)));
  for (const { startEtcd } of members) startEtcd();
  for (const { startPatroni } of members) startPatroni();
  const primary = async (): Promise<Member | null> => {
    const found = await Promise.all(members.map(async (one) => (await roleOf(one)) === "primary"));
    return members[found.indexOf(true)] ?? null;
  };
  const settled = async (): Promise<Member> => {
    let found: Member | null = null;
    await until(async () => {
      found = await primary();
      return found !== null && (await isComplete(found, members.length - 1));
    }, 200);
    return found as unknown as Member;
  };
  const first = await settled();
  const psql = ["runuser", "-u", "postgres", "--", `${BIN}/psql`, "-h", first.folder, "-c"];
  const { code, stderr } = first.host.run([...psql, "CREATE DATABASE signalbox"]);
  if (code !== 0) throw new Error(stderr);
  const list = hosts.map(({ address }) => `${address}:5432`).join(",");
  return {
    network,
    members,
    url: `postgres://postgres:${PASSWORD}@${list}/signalbox`,
    primary,
    settled,
    async switchOver() {
      const from = await settled();
      await fetch(`http://${from.host.address}:8008/switchover`, {
        method: "POST",
        body: JSON.stringify({ leader: from.host.name }),
      });
    },
  };
}

async function stateOf({ host }: Member): Promise<Record<string, unknown> | null> {
  try {
    const signal = AbortSignal.timeout(1_000);
    return (await (
      await fetch(`http://${host.address}:8008/patroni`, { signal })
    ).json()) as Record<string, unknown>;
  } catch {
    return null;
  }
}

async function roleOf(member: Member): Promise<string | null> {
  const state = await stateOf(member);
  if (state === null || state["state"] !== "running") return null;
  return state["role"] === "master" || state["role"] === "primary" ? "primary" : "replica";
}

async function isComplete(primary: Member, standbys: number): Promise<boolean> {
  const state = await stateOf(primary);
  const found = (state?.["replication"] ?? []) as { state?: string; sync_state?: string }[];
  const streaming = found.filter((one) => one.state === "streaming");
  return streaming.length === standbys && streaming.some((one) => one.sync_state === "sync");
}

function createMember(host: Host, all: readonly Host[], folder: string): Member {
  const owner = postgresUser();
  mkdirSync(folder, { mode: 0o700 });
  mkdirSync(join(folder, "etcd"), { mode: 0o700 });
  const config = join(folder, "patroni.yml");
  // Patroni reads YAML, of which JSON is a part.
  writeFileSync(config, JSON.stringify(patroniConfig(host, all, folder)), { mode: 0o600 });
  for (const path of [folder, join(folder, "etcd"), config]) chownSync(path, owner, owner);
  const started: { patroni: Process | null; etcd: Process | null } = { patroni: null, etcd: null };
  const as = ["runuser", "-u", "postgres", "--"];
  return {
    host,
    folder,
    patroni: () => need(started.patroni),
    etcd: () => need(started.etcd),
    startPatroni: () => void (started.patroni = host.start([...as, "patroni", config])),
    startEtcd: () =>
      void (started.etcd = host.start([...as, "etcd", ...etcdFlags(host, all, folder)])),
  };
}

function need(one: Process | null): Process {
  if (one === null) throw new Error("it is started first");
  return one;
}

function etcdFlags(host: Host, all: readonly Host[], folder: string): string[] {
  const flags = {
    name: host.name,
    "data-dir": join(folder, "etcd"),
    "listen-peer-urls": `http://${host.address}:2380`,
    "initial-advertise-peer-urls": `http://${host.address}:2380`,
    "listen-client-urls": `http://${host.address}:2379`,
    "advertise-client-urls": `http://${host.address}:2379`,
    "initial-cluster": all.map(({ name, address }) => `${name}=http://${address}:2380`).join(","),
    "initial-cluster-state": "new",
    "enable-v2": "true",
  };
  return Object.entries(flags).map(([name, value]) => `--${name}=${value}`);
}

function login(username: string): object {
  return { username, password: PASSWORD };
}

function patroniConfig(host: Host, all: readonly Host[], folder: string): object {
  return {
    scope: "signalbox",
    name: host.name,
    restapi: { listen: `${host.address}:8008`, connect_address: `${host.address}:8008` },
    etcd3: { hosts: all.map(({ address }) => `${address}:2379`) },
    bootstrap: {
      dcs: {
        ttl: 20,
        loop_wait: 5,
        retry_timeout: 5,
        maximum_lag_on_failover: 1_048_576,
        synchronous_mode: true,
        synchronous_mode_strict: true,
        postgresql: {
          use_pg_rewind: true,
          parameters: { max_connections: 60 },
        },
      },
      initdb: [{ encoding: "UTF8" }, "data-checksums"],
      pg_hba: [
        "local all all trust",
        "host replication replicator all scram-sha-256",
        "host all all all scram-sha-256",
      ],
    },
    postgresql: {
      listen: `${host.address}:5432`,
      connect_address: `${host.address}:5432`,
      data_dir: join(folder, "data"),
      bin_dir: BIN,
      authentication: {
        superuser: login("postgres"),
        replication: login("replicator"),
        rewind: login("rewind"),
      },
      parameters: { unix_socket_directories: folder, shared_buffers: "64MB" },
    },
  };
}

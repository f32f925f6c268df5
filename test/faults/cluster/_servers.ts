/** Servers of Signalbox on one database, and HAProxy in front of them. */
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { makeCertificate } from "../../kit/certificates.ts";
import { cli, signalbox } from "../../kit/cli.ts";
import { temporaryFolder, until } from "../../kit/setup.ts";
import type { createNetwork, Host, Process } from "./_network.ts";

export interface Node {
  readonly host: Host;
  readonly start: () => void;
  readonly process: () => Process;
}

export interface Servers {
  readonly nodes: readonly Node[];
  readonly balancer: Host;
  /** Resolves when all of them are. */
  readonly ready: () => Promise<void>;
  /** For the environment of a client on the balancer. */
  readonly env: Readonly<Record<"URL" | "FEED" | "KEY" | "READ_KEY" | "SSL_CERT_FILE", string>>;
}

type Network = ReturnType<typeof createNetwork>;

/** `store`: the URL of the database. */
export async function startServers(network: Network, store: string): Promise<Servers> {
  const folder = temporaryFolder();
  const balancer = network.host("lb");
  const hosts = ["n1", "n2", "n3"].map((name) => network.host(name));
  const env = { SIGNALBOX_STORE: store };
  const print = async (...args: string[]): Promise<string> => {
    const { code, stdout, stderr } = await cli(args, { env });
    if (code !== 0) throw new Error(stderr);
    return stdout.trim();
  };
  await print("desk", "create", "alpha");
  const nodes = hosts.map((host) => createNode(host, balancer, join(folder, host.name), store));
  for (const { start } of nodes) start();
  const certificate = await startBalancer(balancer, hosts, folder);
  const ready = () =>
    until(async () => (await Promise.all(nodes.map(isReady))).every(Boolean), 200);
  await ready();
  return {
    nodes,
    balancer,
    ready,
    env: {
      URL: "https://127.0.0.1:8443",
      FEED: "https://127.0.0.1:8444",
      KEY: await print("key", "mint", "--desk", "alpha"),
      READ_KEY: await print("key", "mint", "--read"),
      SSL_CERT_FILE: certificate,
    },
  };
}

async function isReady({ host: { address }, process }: Node): Promise<boolean> {
  if (process().hasEnded()) throw new Error(`a server has ended: ${process().output()}`);
  try {
    const signal = AbortSignal.timeout(1_000);
    return (await fetch(`http://${address}:8083/readyz`, { signal })).ok;
  } catch {
    return false;
  }
}

function createNode(host: Host, balancer: Host, dataDir: string, store: string): Node {
  mkdirSync(dataDir, { mode: 0o700 });
  const flags = {
    data: dataDir,
    listen: `${host.address}:8080`,
    "read-listen": `${host.address}:8082`,
    "ops-listen": `${host.address}:8083`,
    "trust-proxy": balancer.address,
    "public-url": "https://127.0.0.1:8443",
    "console-listen": "off",
  };
  const words = Object.entries(flags).map(([name, value]) => `--${name}=${value}`);
  let started: Process | null = null;
  return {
    host,
    start: () => {
      started = host.start([...signalbox, "serve", ...words], { SIGNALBOX_STORE: store });
    },
    process() {
      if (started === null) throw new Error("it is started first");
      return started;
    },
  };
}

/** Returns the file of its certificate. */
async function startBalancer(
  balancer: Host,
  hosts: readonly Host[],
  folder: string,
): Promise<string> {
  const { cert, key } = await makeCertificate("cluster");
  const [both, config] = [join(folder, "both.pem"), join(folder, "haproxy.cfg")];
  writeFileSync(both, `${cert}\n${key}`, { mode: 0o600 });
  writeFileSync(join(folder, "cert.pem"), cert);
  writeFileSync(config, haproxyConfig(hosts, both));
  balancer.start(["haproxy", "-db", "-f", config]);
  return join(folder, "cert.pem");
}

/** The configuration of docs/scale.md. */
function haproxyConfig(hosts: readonly Host[], certificate: string): string {
  const pool = (name: string, listen: number, port: number): string => `
frontend ${name}
  bind :${listen} ssl crt ${certificate}
  http-request set-header X-Forwarded-Proto https
  http-request set-header X-Forwarded-For %[src]
  default_backend ${name}
backend ${name}
  balance roundrobin
  option httpchk GET /readyz
  option redispatch
  default-server check port 8083 inter 1s fall 2 rise 1 on-marked-down shutdown-sessions
${hosts.map((host) => `  server ${host.name} ${host.address}:${port}`).join("\n")}
`;
  return `
defaults
  mode http
  timeout connect 2s
  timeout check 2s
  timeout client 70s
  timeout server 70s
${pool("signals", 8443, 8080)}${pool("feed", 8444, 8082)}`;
}

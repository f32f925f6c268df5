/** What `serve` can be told. Flags win over the environment (`SIGNALBOX_…`), which wins over these defaults. */
import { UserError } from "./domain/errors.ts";
import { CONNECTIONS_MAX_DEFAULT } from "./http/connections.ts";
import { RATE_LIMIT_DEFAULT_PER_S } from "./net/rate.ts";
import type { CertificateFiles } from "./http/tls.ts";
import type { BackupPlan } from "./ops/backups.ts";
import { type Address, formatAddress, isLoopbackHost } from "./net/address.ts";

export interface ServeConfig {
  readonly listen: Address;
  readonly dataDir: string;
  /** What clients call us, without a trailing slash. */
  readonly publicUrl: string | null;
  readonly tls: CertificateFiles | null;
  /** Addresses and CIDR ranges. */
  readonly trustedProxies: readonly string[];
  /** Requests a second and desk; 0 for no limit. */
  readonly rateLimit: number;
  /** Open at once on the public address; 0 for as many as the process has descriptors for. */
  readonly connectionsMax: number;
  readonly opsListen: Address | null;
  /** Where the desks' console is; null: it is off. */
  readonly consoleListen: Address | null;
  /** What browsers call the console, without a trailing slash. */
  readonly consoleUrl: string | null;
  /** How long a stop waits for requests in flight. */
  readonly stopTimeoutMs: number;
  readonly backups: BackupPlan | null;
  /** Another program copies the log into the database; this one does not. */
  readonly externalCheckpoints: boolean;
}

export const defaults = {
  listen: "127.0.0.1:8080",
  consoleListen: "127.0.0.1:8081",
  data: "./data",
  rateLimit: RATE_LIMIT_DEFAULT_PER_S,
  connectionsMax: CONNECTIONS_MAX_DEFAULT,
  stopTimeout: "10s",
  logLevel: "info",
  backupEvery: "1h",
  backupKeep: 24,
} as const;

/** Keys must never travel in the clear: without TLS or a proxy that has it, only loopback will do. */
export function requireSafeTransport(config: ServeConfig): void {
  requireSafe(config.listen, "Keys", config);
  if (config.consoleListen !== null) requireSafe(config.consoleListen, "Passwords", config);
}

function requireSafe(
  address: Address,
  secrets: "Keys" | "Passwords",
  { tls, trustedProxies }: ServeConfig,
): void {
  if (tls !== null || trustedProxies.length > 0 || isLoopbackHost(address.host)) return;
  throw new UserError(
    `${secrets} would cross the network in the clear on ${formatAddress(address)}: give --tls-cert FILE --tls-key FILE, or --trust-proxy CIDR for the proxy in front that ends HTTPS, or listen on 127.0.0.1:${address.port}.`,
  );
}

/** The sockets of an interface are told from others by their port (`http/sockets.ts`). */
export function requirePortsOfTheirOwn(config: ServeConfig): void {
  const taken = new Map([[config.listen.port, "--listen"]]);
  for (const [flag, address] of [
    ["--console-listen", config.consoleListen],
    ["--ops-listen", config.opsListen],
  ] as const) {
    if (address === null || address.port === 0) continue;
    const other = taken.get(address.port);
    if (other !== undefined) {
      throw new UserError(
        `${flag} ${formatAddress(address)} has the port of ${other}: give it one of its own, such as ${formatAddress({ ...address, port: freePort(taken) })}.`,
      );
    }
    taken.set(address.port, flag);
  }
}

function freePort(taken: ReadonlyMap<number, string>): number {
  let port = Math.min(...taken.keys());
  while (taken.has(port)) port = port === 65_535 ? 1_024 : port + 1;
  return port;
}

export function defaultPublicUrl(address: Address, isTls: boolean): string {
  return `${isTls ? "https" : "http"}://${formatAddress(address)}`;
}

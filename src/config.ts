/** What `serve` can be told. Flags win over the environment (`SIGNALBOX_…`), which wins over these defaults. */
import { UserError } from "./domain/errors.ts";
import { CONNECTIONS_MAX_DEFAULT } from "./net/connections.ts";
import { RATE_LIMIT_DEFAULT_PER_S } from "./net/rate.ts";
import type { CertificateFiles } from "./net/tls.ts";
import type { BackupPlan } from "./ops/backups.ts";
import {
  type Address,
  formatAddress,
  isLoopbackHost,
  isTaken,
  PortInUseError,
  requireFree,
} from "./net/address.ts";

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

/** The sockets of an interface are told from others by their port (`net/sockets.ts`). */
export function requirePortsOfTheirOwn(config: ServeConfig): void {
  const taken = new Map<number, string>();
  for (const [flag, address] of listening(config)) {
    const other = address.port === 0 ? undefined : taken.get(address.port);
    if (other !== undefined) {
      throw new UserError(
        `${flag} ${formatAddress(address)} has the port of ${other}: give it one of its own, such as ${formatAddress(freeAddress(address, config))}.`,
      );
    }
    taken.set(address.port, flag);
  }
}

/** Throws {@link UserError} for an address that cannot be bound. */
export function requireFreePorts(config: ServeConfig): void {
  for (const [, address] of listening(config)) requireFree(address);
}

/** Adds to the error of a port that is in use the flag to type, with a port that is free. */
export function explainPortInUse(error: unknown, config: ServeConfig): unknown {
  if (!(error instanceof PortInUseError)) return error;
  const { address, message } = error;
  const [flag] = listening(config).find(([, own]) => own.port === address.port) ?? ["--listen"];
  const off = flag === "--console-listen" ? ", or none with --console-listen off" : "";
  return new UserError(
    `${message}, such as ${flag} ${formatAddress(freeAddress(address, config))}${off}.`,
  );
}

function listening(config: ServeConfig): [flag: string, address: Address][] {
  const all: [string, Address | null][] = [
    ["--listen", config.listen],
    ["--console-listen", config.consoleListen],
    ["--ops-listen", config.opsListen],
  ];
  return all.flatMap(([flag, address]) => (address === null ? [] : [[flag, address]]));
}

/** The same host with the next port that neither another program nor another flag has. */
function freeAddress({ host, port }: Address, config: ServeConfig): Address {
  const own = new Set(listening(config).map(([, address]) => address.port));
  let free = port;
  do {
    free = free === 65_535 ? 1_024 : free + 1;
  } while (own.has(free) || isTaken({ host, port: free }));
  return { host, port: free };
}

export function defaultPublicUrl(address: Address, isTls: boolean): string {
  return `${isTls ? "https" : "http"}://${formatAddress(address)}`;
}

/** The configuration of `serve`, which `commands/serve/read-config.ts` makes from the settings. */
import { UsageError, UserError } from "../lib/errors.ts";
import type { AcmePlan } from "../http/acme/plan.ts";
import type { CertificateFiles } from "../http/tls.ts";
import type { BackupPlan } from "../backups/status.ts";
import type { NoticeSettings } from "../notices/settings.ts";
import {
  type Address,
  formatAddress,
  isLoopbackHost,
  isTaken,
  PortInUseError,
  requireFree,
} from "../http/address.ts";

export interface ServeConfig {
  readonly listen: Address;
  /** The server's own folder; without a store also the database's. */
  readonly dataDir: string;
  /** URL of a PostgreSQL database that other servers may use; null: SQLite in the folder. */
  readonly store: string | null;
  /** URL that clients use, without a trailing slash; null: made from `listen`. */
  readonly publicUrl: string | null;
  readonly tls: CertificateFiles | null;
  /** Obtains the files of `tls`; null: the user provides them. */
  readonly acme: AcmePlan | null;
  /** Addresses and CIDR ranges. */
  readonly trustedProxies: readonly string[];
  /** Requests per second per desk; 0 for no limit. */
  readonly rateLimitPerS: number;
  /** Open connections on the public address; 0 for as many as the process has descriptors for. */
  readonly connectionsMax: number;
  readonly opsListen: Address | null;
  /** Null: the feed is on the ops socket only. */
  readonly readListen: Address | null;
  /** Null turns the console off. */
  readonly consoleListen: Address | null;
  /** The console's public URL, without a trailing slash; null: made from `consoleListen`. */
  readonly consoleUrl: string | null;
  /** How long a stop waits for requests in flight. */
  readonly stopTimeoutMs: number;
  readonly backups: BackupPlan | null;
  readonly notices: NoticeSettings;
  /** Another program, such as Litestream, checkpoints the database. */
  readonly externalCheckpoints: boolean;
  /** Creates a desk if there is none. */
  readonly quickstart: boolean;
}

/** Where the database is, as `store/open.ts` takes it. */
export function whereOf({ store, dataDir }: Pick<ServeConfig, "store" | "dataDir">): string {
  return store ?? dataDir;
}

/** Keys are never sent unencrypted over a network: without TLS, or a proxy that terminates it, we listen on loopback only. Throws `UsageError`. */
export function requireSafeTransport(config: ServeConfig): void {
  const { tls, trustedProxies, listen, readListen, consoleListen } = config;
  if (tls !== null || trustedProxies.length > 0) return;
  for (const address of [listen, readListen, consoleListen]) {
    if (address === null || isLoopbackHost(address.host)) continue;
    const secrets = address === consoleListen ? "Passwords" : "Keys";
    throw new UsageError(
      `${secrets} would be sent unencrypted to ${formatAddress(address)}: give --tls-cert FILE --tls-key FILE, or --trust-proxy CIDR for the proxy that terminates HTTPS, or listen on 127.0.0.1:${address.port}.`,
    );
  }
}

/** The connections of an interface are recognized by their port (`http/sockets.ts`). Throws `UsageError`. */
export function requirePortsOfTheirOwn(config: ServeConfig): void {
  const taken = new Map<number, string>();
  for (const [flag, address] of listening(config)) {
    const other = address.port === 0 ? undefined : taken.get(address.port);
    if (other !== undefined) {
      throw new UsageError(
        `${flag} ${formatAddress(address)} uses the port of ${other}: choose another port, such as ${formatAddress(freeAddress(address, config))}.`,
      );
    }
    taken.set(address.port, flag);
  }
}

/**
 * Throws {@link UserError} for an address that cannot be bound. `mayBeInUse`: ports that our server
 * has, perhaps with rights that this process lacks.
 */
export function requireFreePorts(config: ServeConfig, mayBeInUse: ReadonlySet<number>): void {
  for (const [, address] of listening(config)) {
    if (!(mayBeInUse.has(address.port) && isTaken(address))) requireFree(address);
  }
}

/** Adds the flag to type, with a free port, to the error of a port in use. */
export function explainPortInUse(error: unknown, config: ServeConfig): unknown {
  if (!(error instanceof PortInUseError)) return error;
  const { address, message } = error;
  const [flag] = listening(config).find(([, own]) => own.port === address.port) ?? ["--listen"];
  return new UserError(
    `${message}, such as ${flag} ${formatAddress(freeAddress(address, config))}${alternatives[flag] ?? ""}.`,
  );
}

const alternatives: Readonly<Record<string, string>> = {
  "--console-listen": ", or none with --console-listen off",
  "--acme-http-listen": ", to which something forwards port 80",
};

function listening(config: ServeConfig): [flag: string, address: Address][] {
  const all: [string, Address | null][] = [
    ["--listen", config.listen],
    ["--console-listen", config.consoleListen],
    ["--read-listen", config.readListen],
    ["--ops-listen", config.opsListen],
    ["--acme-http-listen", config.acme?.httpListen ?? null],
  ];
  return all.flatMap(([flag, address]) => (address === null ? [] : [[flag, address]]));
}

/** Returns the same host with the next port that no program and no other flag uses. */
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

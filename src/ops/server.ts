/** Serves health checks and metrics on a Unix socket in the data folder and, with `--ops-listen`, on TCP. */
import { chmodSync, rmSync } from "node:fs";
import { join } from "node:path";
import { UserError } from "../lib/errors.ts";
import { type Address, explainBindError } from "../http/address.ts";
import type { Outage } from "../domain/storage/append.ts";
import type { AcmeStatus } from "../http/acme/report.ts";
import type { UnknownKeys } from "../http/limits/unknown-keys.ts";
import type { BackupStatus } from "../backups/status.ts";

export const SOCKET_NAME = "ops.sock";
/** For commands. On the socket only. */
export const STATUS_PATH = "/status";
const FEED_PATH = "/feed";
/** More than a reader may wait for: a request cannot change it on such a socket. */
const SOCKET_IDLE_TIMEOUT_S = 120;
/** The size of sockaddr_un.sun_path, less its closing NUL (unix(7)). */
const SOCKET_PATH_BYTES_MAX = 107;

/** A running server about itself. What has not started yet is null. */
export interface ServerStatus {
  readonly version: string;
  readonly pid: number;
  /** The machine's name. An earlier version has none. */
  readonly node?: string;
  /** Hosts and name of a database that other servers may use; null: in the data folder. An earlier version has none. */
  readonly database?: string | null;
  /** Epoch milliseconds. */
  readonly started_at: number;
  /** Addresses as bound, such as `127.0.0.1:8080`. */
  readonly listen: string | null;
  readonly console_listen: string | null;
  readonly read_listen: string | null;
  readonly ops_listen: string | null;
  readonly public_url: string | null;
  /** Null without `--read-listen`. */
  readonly feed_url: string | null;
  /** The console's public URL; null: it is off. */
  readonly console_url: string | null;
  /** Why the console does not work as it should; null if it does, or is off. An earlier version has none. */
  readonly console_problem?: string | null;
  /** Epoch milliseconds; null without TLS of our own. */
  readonly certificate_expires_at: number | null;
  /** Why the files of `--tls-cert` cannot replace the certificate in use; null if they can. An earlier version has none. */
  readonly certificate_refusal?: string | null;
  /** Null without `--acme-domain`. */
  readonly acme: AcmeStatus | null;
  /** Null without `--backup-dir`. */
  readonly backups: BackupStatus | null;
  /** Null while signals are stored. An earlier version has none. */
  readonly outage?: Outage | null;
  /**
   * Keys that have ended and were refused since the start, with the latest time; epoch milliseconds.
   * An earlier version has none.
   */
  readonly refused_keys?: readonly { readonly key_id: string; readonly at: number }[];
  /** Ids of damaged signals that were asked for since the start. An earlier version has none. */
  readonly damaged_signals?: readonly string[];
  /** Requests with keys that no desk has, since the start. An earlier version has none. */
  readonly unknown_keys?: ReturnType<UnknownKeys["list"]>;
}

/** What both interfaces serve. */
interface OpsSources {
  readonly dataDir: string;
  /** Which of several servers answers, and their database; empty for the one server of a folder. */
  readonly place: { readonly node?: string; readonly database?: string };
  readonly ready: () => Promise<{ readonly ready: boolean; readonly checks: object }>;
  readonly metrics: () => Promise<Response>;
}

/** Answers all methods of `/feed`. On the socket only. */
export type AnswerFeed = (request: Request, server: Bun.Server<undefined>) => Promise<Response>;

interface OpsServer {
  stop(): Promise<void>;
}

/** Throws {@link UserError} if a socket in this folder would have a path that is too long. */
export function socketPathIn(dataDir: string): string {
  const path = join(dataDir, SOCKET_NAME);
  if (Buffer.byteLength(path) <= SOCKET_PATH_BYTES_MAX) return path;
  throw new UserError(
    `${path} is too long for a socket (over ${SOCKET_PATH_BYTES_MAX} bytes): name a folder with a shorter path with --data DIR.`,
  );
}

/** Call it with the folder's lock held: it replaces the socket of a server that was killed. */
export function serveOnSocket(
  sources: OpsSources,
  status: () => ServerStatus,
  feed: AnswerFeed,
): OpsServer {
  const path = socketPathIn(sources.dataDir);
  rmSync(path, { force: true });
  const { routes, ...others } = handlers(sources);
  const server = Bun.serve({
    unix: path,
    ...others,
    // Bun's types do not know that such a server has it.
    ...({ idleTimeout: SOCKET_IDLE_TIMEOUT_S } as object),
    routes: {
      ...routes,
      [STATUS_PATH]: { GET: () => Response.json(status()) },
      [FEED_PATH]: feed,
    },
  });
  chmodSync(path, 0o600);
  return {
    stop: async () => {
      await server.stop(true);
      rmSync(path, { force: true });
    },
  };
}

/** Throws {@link UserError} if the address cannot be bound. */
export function serveOnTcp(
  sources: OpsSources,
  { host, port }: Address,
): OpsServer & { address: Address } {
  try {
    const server = Bun.serve({ hostname: host, port, ...handlers(sources) });
    return { address: { host, port: server.port ?? port }, stop: () => server.stop(true) };
  } catch (error) {
    throw explainBindError(error, { host, port });
  }
}

function handlers({ place, ready, metrics }: OpsSources) {
  return {
    development: false as const,
    maxRequestBodySize: 1024,
    routes: {
      "/healthz": { GET: () => Response.json({ status: "ok" }) },
      "/readyz": {
        GET: async () => {
          const { ready: isReady, checks } = await ready();
          return Response.json(
            { status: isReady ? "ok" : "failing", ...place, checks },
            { status: isReady ? 200 : 503 },
          );
        },
      },
      "/metrics": { GET: metrics },
    },
    fetch: () => Response.json({ error: "not_found" }, { status: 404 }),
    error: () => Response.json({ error: "internal_error" }, { status: 500 }),
  };
}

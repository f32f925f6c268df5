/** Serves health checks on a Unix socket in the data folder and, with `--ops-listen`, on TCP. */
import { chmodSync, rmSync } from "node:fs";
import { join } from "node:path";
import { UserError } from "../domain/errors.ts";
import { type Address, explainBindError } from "../net/address.ts";
import { type HealthSources, readiness } from "./health.ts";

export const SOCKET_NAME = "ops.sock";
/** For the commands that print links to the console. On the socket only. */
export const CONSOLE_URL_PATH = "/console-url";
/** The size of sockaddr_un.sun_path, less its closing NUL (unix(7)). */
const SOCKET_PATH_BYTES_MAX = 107;

export interface OpsServer {
  stop(): Promise<void>;
}

/** Call it with the folder's lock held: it replaces the socket of a server that was killed. */
export function serveOnSocket(sources: HealthSources, consoleUrl: () => string | null): OpsServer {
  const path = join(sources.dataDir, SOCKET_NAME);
  if (Buffer.byteLength(path) > SOCKET_PATH_BYTES_MAX) {
    throw new UserError(
      `${path} is too long for a socket (over ${SOCKET_PATH_BYTES_MAX} bytes): name a folder with a shorter path with --data DIR.`,
    );
  }
  rmSync(path, { force: true });
  const { routes, ...others } = handlers(sources);
  const console_url = { GET: () => Response.json({ console_url: consoleUrl() }) };
  const server = Bun.serve({
    unix: path,
    ...others,
    routes: { ...routes, [CONSOLE_URL_PATH]: console_url },
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
  sources: HealthSources,
  { host, port }: Address,
): OpsServer & { address: Address } {
  try {
    const server = Bun.serve({ hostname: host, port, ...handlers(sources) });
    return { address: { host, port: server.port ?? port }, stop: () => server.stop(true) };
  } catch (error) {
    throw explainBindError(error, { host, port });
  }
}

function handlers(sources: HealthSources) {
  return {
    development: false as const,
    maxRequestBodySize: 1024,
    routes: {
      "/healthz": { GET: () => Response.json({ status: "ok" }) },
      "/readyz": {
        GET: async () => {
          const checks = await readiness(sources);
          const isReady = Object.values(checks).every((check) => check.ok);
          return Response.json(
            { status: isReady ? "ok" : "failing", checks },
            { status: isReady ? 200 : 503 },
          );
        },
      },
    },
    fetch: () => Response.json({ error: "not_found" }, { status: 404 }),
    error: () => Response.json({ error: "internal_error" }, { status: 500 }),
  };
}

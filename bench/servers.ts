/** The servers under test: how each is prepared with a database and one key, and started. */
import { join } from "node:path";
import type { LoadKind } from "./load.ts";
import { freePort, run } from "./process.ts";
import { installFastify, type Tools } from "./tools.ts";

export type ServerName = "signalbox" | "bare" | "fastify";

/** Ready to be started. */
export interface Prepared {
  readonly command: string[];
  readonly env: Record<string, string>;
  /** What the load authenticates with. */
  readonly key: string;
  /** Holds the accepted signals; null for a server that stores nothing. */
  readonly databaseFile: string | null;
}

interface Place {
  readonly dataDir: string;
  readonly port: number;
  /** A key in the database in `dataDir`; null for a new database. */
  readonly key: string | null;
}

type Prepare = (tools: Tools, place: Place) => Promise<Prepared>;

/** Keyed by name. */
export const prepare: Record<ServerName, Prepare> = {
  async signalbox({ signalbox, serve = signalbox }, { dataDir, port, key }) {
    const data = ["--data", dataDir];
    // The console's default port may be in use.
    const listen = ["--listen", `127.0.0.1:${port}`, "--console-listen", `127.0.0.1:${freePort()}`];
    return {
      command: [...serve, "serve", ...data, ...listen, "--rate-limit", "0"],
      env: {},
      key: key ?? (await mintKey(signalbox, data)),
      databaseFile: join(dataDir, "signalbox.db"),
    };
  },

  async bare(_tools, { port }) {
    const command = [process.execPath, join(import.meta.dir, "bare.ts"), String(port)];
    return { command, env: {}, key: makeKey(), databaseFile: null };
  },

  async fastify(tools, { dataDir, port }) {
    await installFastify(tools);
    const databaseFile = join(dataDir, "signals.db");
    const server = join(tools.fastifyFolder, "server.js");
    const key = makeKey();
    return {
      command: [tools.node(), server, databaseFile, String(port)],
      env: { BENCH_KEY: key, NODE_ENV: "production" },
      key,
      databaseFile,
    };
  },
};

/** The status that each request of a load gets. The bare server accepts everything. */
export function expectedStatus(server: ServerName, kind: LoadKind): number {
  if (server === "bare") return 201;
  return { v7: 201, v4: 201, duplicates: 200, invalid: 422, unauthorised: 401 }[kind];
}

/** The key that a load's requests are sent with. */
export function keyOf(kind: LoadKind, key: string): string {
  return kind === "unauthorised" ? makeKey() : key;
}

async function mintKey(signalbox: readonly string[], data: readonly string[]): Promise<string> {
  await run([...signalbox, "desk", "create", "bench", ...data]);
  const { stdout } = await run([...signalbox, "key", "mint", "--desk", "bench", ...data]);
  return stdout.trim();
}

/** As long as Signalbox's own, so that all requests have the same size. */
function makeKey(): string {
  return `sbk_${Buffer.from(crypto.getRandomValues(new Uint8Array(32))).toString("hex")}`;
}

/** The servers under test: how each is prepared with an empty database and one key, and started. */
import { join } from "node:path";
import { run } from "./process.ts";
import type { Tools } from "./tools.ts";

export const serverNames = ["signalbox", "bare", "fastify"] as const;
export type ServerName = (typeof serverNames)[number];

/** Ready to be started. */
export interface Prepared {
  readonly command: string[];
  readonly env: Record<string, string>;
  /** What the load authenticates with. */
  readonly key: string;
  /** Where accepted signals must be afterwards; null where nothing is stored. */
  readonly databaseFile: string | null;
}

type Prepare = (tools: Tools, folder: string, port: number) => Promise<Prepared>;

/** Keyed by name; `folder` is new and empty. */
export const prepare: Record<ServerName, Prepare> = {
  async signalbox(tools, folder, port) {
    const data = ["--data", folder];
    await run([tools.signalbox, "desk", "create", "bench", ...data]);
    const { stdout } = await run([tools.signalbox, "key", "mint", "--desk", "bench", ...data]);
    const listen = ["--listen", `127.0.0.1:${port}`, "--rate-limit", "0"];
    return {
      command: [tools.signalbox, "serve", ...data, ...listen],
      env: {},
      key: stdout.trim(),
      databaseFile: join(folder, "signalbox.db"),
    };
  },

  async bare(_tools, _folder, port) {
    const command = [process.execPath, join(import.meta.dir, "bare.ts"), String(port)];
    return { command, env: {}, key: makeKey(), databaseFile: null };
  },

  async fastify(tools, folder, port) {
    const databaseFile = join(folder, "signals.db");
    const server = join(tools.fastifyFolder, "server.js");
    const key = makeKey();
    return {
      command: [tools.node, server, databaseFile, String(port)],
      env: { BENCH_KEY: key, NODE_ENV: "production" },
      key,
      databaseFile,
    };
  },
};

/** As long as Signalbox's own, so that all requests are of one size. */
function makeKey(): string {
  return `sbk_${Buffer.from(crypto.getRandomValues(new Uint8Array(32))).toString("hex")}`;
}

/** The servers under test: how each is prepared with a database and one key, and started. */
import { join } from "node:path";
import { freePort, run } from "./process.ts";
import type { Tools } from "./tools.ts";

export type ServerName = "signalbox" | "bare";

/** Ready to be started. */
export interface Prepared {
  readonly command: string[];
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
      key: key ?? (await mintKey(signalbox, data)),
      databaseFile: join(dataDir, "signalbox.db"),
    };
  },

  async bare(_tools, { port }) {
    const command = [process.execPath, join(import.meta.dir, "bare.ts"), String(port)];
    // As long as Signalbox's own, so that all requests have the same size.
    return { command, key: `sbk_${"0".repeat(64)}`, databaseFile: null };
  },
};

async function mintKey(signalbox: readonly string[], data: readonly string[]): Promise<string> {
  await run([...signalbox, "desk", "create", "bench", ...data]);
  const { stdout } = await run([...signalbox, "key", "mint", "--desk", "bench", ...data]);
  return stdout.trim();
}

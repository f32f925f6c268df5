/** Both engines, for tests that each must pass. On PostgreSQL several servers share a database. */
import { Database } from "bun:sqlite";
import { test } from "bun:test";
import { join } from "node:path";
import { Pool } from "../../../src/store/postgres/pool.ts";
import { DATABASE_NAME } from "../../../src/store/sqlite/files/folder.ts";
import { testServer } from "../../kit/postgresql.ts";
import { onCleanup, query, startTestApp, temporaryFolder, type TestApp } from "../../kit/setup.ts";

export interface Place {
  /** The URL of an empty database; null: it is in a folder. */
  readonly store: string | null;
  /** For commands, and a server on a folder. */
  readonly dataDir: string;
  /** For commands and servers. */
  readonly env: Record<string, string>;
  /** Reads rows as a user can. */
  readonly rows: <Row extends object>(sql: string) => Promise<Row[]>;
  /** Changes the database behind the back of its servers. */
  readonly change: (sql: string) => Promise<void>;
}

export interface Engine {
  readonly name: string;
  readonly hasServers: boolean;
  readonly place: () => Promise<Place>;
}

const server = await testServer();

const sqlite: Engine = {
  name: "SQLite",
  hasServers: false,
  async place() {
    const dataDir = join(temporaryFolder(), "data");
    return {
      store: null,
      dataDir,
      env: { SIGNALBOX_DATA: dataDir },
      rows: async (sql) => query(dataDir, sql),
      async change(sql) {
        using db = new Database(join(dataDir, DATABASE_NAME), { readwrite: true, create: false });
        db.run("PRAGMA busy_timeout = 10000");
        db.run(sql);
      },
    };
  },
};

const postgresql: Engine = {
  name: "PostgreSQL",
  hasServers: true,
  async place() {
    const store = (await server?.createDatabase()) ?? "";
    const pool = new Pool(store, { max: 1 });
    onCleanup(() => pool.close());
    return {
      store,
      dataDir: temporaryFolder(),
      env: { SIGNALBOX_STORE: store },
      rows: async <Row extends object>(sql: string) => [
        ...(await pool.use((pg) => pg.unsafe<Row[]>(sql))),
      ],
      change: async (sql) => void (await pool.use((pg) => pg.unsafe(sql))),
    };
  },
};

/** Runs a test on each engine, or skips it where that cannot start. */
export function engineTest(title: string, work: (engine: Engine) => Promise<void>): void {
  test(`${title} (SQLite)`, () => work(sqlite));
  test.skipIf(server === null)(`${title} (PostgreSQL)`, () => work(postgresql));
}

/** Servers on one new database: the one of a folder, or two. They may be the same. */
export async function startTestApps(
  engine: Engine,
): Promise<{ one: TestApp; other: TestApp; rows: Place["rows"] }> {
  const { store, dataDir, rows } = await engine.place();
  if (store === null) {
    const app = await startTestApp({ dataDir });
    return { one: app, other: app, rows };
  }
  const one = await startTestApp({ store });
  return { one, other: await startTestApp({ store }), rows };
}

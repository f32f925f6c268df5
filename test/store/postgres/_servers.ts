/** Servers on one PostgreSQL database, with a desk and a key. */
import { test } from "bun:test";
import type { StorageProblem } from "../../../src/domain/storage/append.ts";
import { ADMIN } from "../../../src/domain/storage/author.ts";
import type { ServerStorage } from "../../../src/domain/storage/storage.ts";
import type { Signal } from "../../../src/domain/signal/signal.ts";
import { openConsoleStorage, openServerStorage } from "../../../src/store/open.ts";
import { Pool } from "../../../src/store/postgres/pool.ts";
import { testServer } from "../../kit/postgresql.ts";
import { onCleanup, temporaryFolder } from "../../kit/setup.ts";
import { emptySignal } from "../_signal.ts";

const server = await testServer();
export const postgresTest = server === null ? test.skip : test;

export function createDatabase(): Promise<string> {
  if (server === null) throw new Error("these tests are skipped");
  return server.createDatabase();
}

/** As the server's owner. */
export async function query(sql: string): Promise<void> {
  await server?.query(sql);
}

/** In a database, by its URL. */
export async function runIn(url: string, sql: string): Promise<readonly object[]> {
  const pool = new Pool(url, { max: 1 });
  const rows = await pool.use((pg) => pg.unsafe(sql));
  await pool.close();
  return rows;
}

/** `through`: the URL by which the servers reach the database. */
export async function startServers(
  count: number,
  through: (database: string) => string | Promise<string> = (database) => database,
) {
  const database = await createDatabase();
  const url = await through(database);
  const told: number[][] = [];
  const problems: StorageProblem[] = [];
  const recovered: number[] = [];
  const servers: ServerStorage[] = [];
  for (let index = 0; index < count; index += 1) {
    const heard: number[] = [];
    told.push(heard);
    const opened = await openServerStorage(
      { dataDir: temporaryFolder(), store: url, externalCheckpoints: false },
      {
        onFatal: (reason) => {
          throw new Error(reason);
        },
        onProblem: (problem) => void problems.push(problem),
        onDamaged: () => {},
        onRecovered: () => void recovered.push(index),
        onTransaction: () => {},
        onStored: (desks) => void heard.push(...desks),
        onWarning: () => {},
      },
    );
    onCleanup(() => opened.close());
    servers.push(opened);
  }
  const console = await openConsoleStorage(database, { now: Date.now, onWarning: () => {} });
  onCleanup(() => console.close());
  const { registry, signals } = console;
  const { desk } = await registry.createDesk("alpha", { ifMissing: false });
  const { record, key } = await registry.mintKey(
    { scope: "send", desk: "alpha", label: null, expiresInMs: null },
    ADMIN,
  );
  const submit = (client_signal_id: string | null, more: Partial<Signal> = {}) => ({
    deskId: desk.id,
    keyId: record.id,
    receivedAt: Date.now(),
    signal: { ...emptySignal, ...more, client_signal_id },
  });
  const [one, other, third] = servers as [ServerStorage, ServerStorage, ServerStorage];
  return {
    url: database,
    one,
    other,
    third,
    told,
    problems,
    recovered,
    registry,
    signals,
    submit,
    keyId: record.id,
    key,
  };
}

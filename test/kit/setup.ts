/** Starts a server on a real temporary database, and checks every answer against `openapi.yaml`. */
import { afterAll, beforeAll, onTestFinished } from "bun:test";
import { Database } from "bun:sqlite";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pino } from "pino";
import { type App, startApp } from "../../src/serve/app.ts";
import type { ServeConfig } from "../../src/serve/config.ts";
import type { BackupWork } from "../../src/backups/backups.ts";
import { logOptions } from "../../src/lib/log.ts";
import { Pool } from "../../src/store/postgres/pool.ts";
import { prepare } from "../../src/store/postgres/schema.ts";
import { postgresSql } from "../../src/store/postgres/sql.ts";
import { records } from "../../src/store/records/records.ts";
import type { NewKey } from "../../src/domain/storage/registry.ts";
import { DATABASE_NAME } from "../../src/store/sqlite/files/folder.ts";
import { openDatabase } from "../../src/store/sqlite/files/open.ts";
import { checkAgainstDescription } from "./openapi.ts";
import { type Records, recordsIn } from "./records.ts";

export const signal = {
  source: "venue_2",
  type: "crypto",
  symbol: "BTC/USDT",
  side: "open",
} as const;

type Cleanup = () => unknown;
const cleanups: Cleanup[] = [];
/** Where the cleanups go of what a whole file shares. */
let cleanupsOfFile: Cleanup[] | null = null;

/**
 * Runs after the current test, the last cleanup first. (An `afterEach` in this module would belong to the
 * first file that imports it.)
 */
export function onCleanup(cleanup: Cleanup): void {
  if (cleanupsOfFile !== null) {
    cleanupsOfFile.push(cleanup);
    return;
  }
  if (cleanups.length === 0) onTestFinished(() => cleanUp());
  cleanups.push(cleanup);
}

/** Runs when it is called, or else after the test. */
export function closedOnce(close: () => Promise<unknown>): () => Promise<void> {
  let isClosed = false;
  const once = async (): Promise<void> => {
    if (isClosed) return;
    isClosed = true;
    await close();
  };
  onCleanup(once);
  return once;
}

async function cleanUp(all = cleanups): Promise<void> {
  for (const cleanup of all.splice(0).toReversed()) await cleanup();
}

/**
 * Makes something that all tests of a file share, such as a server, before the first and until after the
 * last. Call it at the top of the file.
 */
export function sharedByFile<T>(make: () => Promise<T>): () => T {
  const own: Cleanup[] = [];
  let made: { readonly value: T } | null = null;
  beforeAll(async () => {
    cleanupsOfFile = own;
    try {
      made = { value: await make() };
    } finally {
      cleanupsOfFile = null;
    }
  });
  afterAll(() => cleanUp(own));
  return () => {
    if (made === null) throw new Error("it is made before the first test");
    return made.value;
  };
}

/** Makes an empty folder, removed after the test. Its path is short, so that a socket fits in it. */
export function temporaryFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), "signalbox-"));
  onCleanup(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

export interface TestAppOptions {
  readonly dataDir?: string;
  /** The URL of a database; null: it is in the folder. */
  readonly store?: string | null;
  readonly config?: Partial<ServeConfig>;
  readonly now?: () => number;
  readonly logLevel?: string;
}

/** An app that all tests of a file share. Returns it without signals. Call it at the top of the file. */
export function appSharedByFile(): () => TestApp {
  const shared = sharedByFile(() => startTestApp());
  return () => {
    const app = shared();
    clearSignals(app.dataDir);
    return app;
  };
}

/** A server may use the folder. */
export function clearSignals(dataDir: string): void {
  const db = openDatabase(dataDir, "command");
  db.run("DELETE FROM signals");
  db.close();
}

export interface LogLine {
  readonly level: string;
  readonly msg: string;
  readonly [field: string]: unknown;
}

export interface TestApp {
  readonly app: App;
  readonly url: string;
  readonly dataDir: string;
  readonly registry: Records["registry"];
  /** A key of desk `alpha`. */
  readonly key: string;
  readonly keyId: string;
  /** Every line logged so far. */
  readonly log: LogLine[];
  /** Reasons of fatal storage failures. */
  readonly fatal: string[];
  /** Sends any request; the answer is checked against `openapi.yaml`. */
  readonly call: (path: string, init?: BunFetchRequestInit) => Promise<Answer>;
  /** Sends `POST /v1/signals` with the key of desk `alpha`: strings and bytes as they are, anything else as JSON. */
  readonly post: (body: unknown, headers?: Record<string, string>) => Promise<Answer>;
  readonly stop: () => Promise<void>;
}

export interface Answer {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  /** The body if it is JSON, otherwise undefined. */
  readonly body: Record<string, unknown>;
}

/** What a test does not set. */
export const defaultConfig: ServeConfig = {
  listen: { host: "127.0.0.1", port: 0 },
  dataDir: "/nowhere",
  store: null,
  publicUrl: null,
  tls: null,
  acme: null,
  trustedProxies: [],
  rateLimitPerS: 0,
  connectionsMax: 0,
  readListen: null,
  opsListen: null,
  consoleListen: null,
  consoleUrl: null,
  // Short: there are many stops, and each waits half of it before it closes idle connections.
  stopTimeoutMs: 100,
  backups: null,
  notices: { allow: [], mail: null },
  externalCheckpoints: false,
  quickstart: false,
};

const refuse = () => Promise.reject(new Error("no backups here"));

export const noBackups: BackupWork = {
  make: refuse,
  drill: refuse,
  roomIn: refuse,
  findOwn: () => Promise.resolve(null),
};

export async function startTestApp(options: TestAppOptions = {}): Promise<TestApp> {
  const { dataDir = temporaryFolder(), store = null, now = Date.now } = options;
  const registry = await openRegistry(dataDir, store, now);
  const { key, keyId } = await mintKey(registry, "alpha");
  const log: LogLine[] = [];
  const fatal: string[] = [];
  const logger = pino(logOptions(options.logLevel ?? "debug"), {
    write: (line: string) => void log.push(JSON.parse(line) as LogLine),
  });
  const app = await startApp({
    config: {
      ...defaultConfig,
      dataDir,
      store,
      ...options.config,
    },
    log: logger,
    now,
    onFatal: (reason) => fatal.push(reason),
    backupWork: noBackups,
  });
  const stop = closedOnce(() => app.stop());
  const url = app.publicUrl;
  const call = (path: string, init: BunFetchRequestInit = {}) => callUrl(url, path, init);
  return {
    app,
    url,
    dataDir,
    registry,
    key,
    keyId,
    log,
    fatal,
    call,
    post: (body, headers = {}) => call("/v1/signals", posting(key, body, { headers })),
    stop,
  };
}

async function openRegistry(
  dataDir: string,
  store: string | null,
  now: () => number,
): Promise<Records["registry"]> {
  if (store === null) {
    const db = openDatabase(dataDir, "command");
    onCleanup(() => db.close());
    return recordsIn(db, now).registry;
  }
  const pool = new Pool(store, { max: 2 });
  onCleanup(() => pool.close());
  await prepare(pool, store, { create: true });
  return records(postgresSql(pool, { now })).registry;
}

/** Sends one request; the answer is checked against `openapi.yaml`. */
export async function callUrl(
  url: string,
  path: string,
  init: BunFetchRequestInit = {},
): Promise<Answer> {
  const response = await fetch(url + path, { redirect: "manual", ...init });
  const text = await response.text();
  const isJson = response.headers.get("content-type") === "application/json" && text !== "";
  const body = (isJson ? JSON.parse(text) : undefined) as Record<string, unknown>;
  checkAgainstDescription(init.method ?? "GET", path, response, text);
  return { status: response.status, headers: response.headers, text, body };
}

/** Posts one signal; the answer is checked against `openapi.yaml`. */
export function post(
  url: string,
  key: string,
  fields: object = {},
  init: BunFetchRequestInit = {},
): Promise<Answer> {
  return callUrl(url, "/v1/signals", posting(key, { ...signal, ...fields }, init));
}

/** A request with this body: strings and bytes as they are, anything else as JSON. */
export function posting(
  key: string,
  body: unknown,
  { headers, ...init }: BunFetchRequestInit = {},
): BunFetchRequestInit {
  const isRaw = typeof body === "string" || body instanceof Uint8Array;
  return {
    method: "POST",
    headers: {
      Authorization: `Bearer ${key}`,
      "Content-Type": "application/json",
      ...(headers as Record<string, string>),
    },
    body: isRaw ? (body as BodyInit) : JSON.stringify(body),
    ...init,
  };
}

/** Clients of a server with a self-signed certificate. */
export const trusting: BunFetchRequestInit = { tls: { rejectUnauthorized: false } };

/** Starts another server on loopback, until the test ends; returns its address. */
export function listen(
  fetch: (request: Request) => Response | Promise<Response>,
  tls?: { readonly cert: string; readonly key: string },
): string {
  const server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    fetch,
    ...(tls === undefined ? {} : { tls }),
  });
  onCleanup(() => server.stop(true));
  return server.url.origin;
}

/** Waits until something is so; the timeout of the test is the limit. */
export async function until(isSo: () => boolean | Promise<boolean>, pauseMs = 5): Promise<void> {
  while (!(await isSo())) await Bun.sleep(pauseMs);
}

/** Mints a key for a desk, which is created if it does not exist. */
export async function mintKey(
  registry: Records["registry"],
  desk: string,
  more: Partial<Pick<NewKey, "label" | "expiresInMs" | "limits">> = {},
): Promise<{ key: string; keyId: string }> {
  await registry.createDesk(desk, { ifMissing: true });
  const plain = { scope: "send", desk, label: null, expiresInMs: null } as const;
  const { key, record } = await registry.mintKey({ ...plain, ...more });
  return { key, keyId: record.id };
}

/** Opens the database like another process would, for locks, triggers and broken tables. */
export function openForDamage(dataDir: string): Database {
  const db = openDatabase(dataDir, "command");
  onCleanup(() => db.close());
  return db;
}

/** Returns the reason of a rejection, or null. (`expect().rejects` does not run immediates.) */
export function rejection(promise: Promise<unknown>): Promise<unknown> {
  return promise.then(
    () => null,
    (error: unknown) => error,
  );
}

/** Reads rows over a read-only connection, as a user can. */
export function query<Row>(
  dataDir: string,
  sql: string,
  ...parameters: (string | number)[]
): Row[] {
  const db = new Database(join(dataDir, DATABASE_NAME), { readonly: true });
  try {
    return db.query<Row, (string | number)[]>(sql).all(...parameters);
  } finally {
    db.close();
  }
}

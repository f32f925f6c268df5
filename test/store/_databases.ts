/** Databases to back up, damage and restore: made without a server, and looked at as a whole. */
import { Database } from "bun:sqlite";
import { createHash } from "node:crypto";
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import type { Awaitable } from "../../src/domain/storage/awaitable.ts";
import { DATABASE_NAME } from "../../src/store/sqlite/files/folder.ts";
import { openDatabase } from "../../src/store/sqlite/files/open.ts";
import { mintKey, onCleanup, temporaryFolder } from "../kit/setup.ts";
import { hashSignals, NO_HASH, type Records, recordsIn } from "../kit/records.ts";

const PAGE_BYTES = 4_096;

export interface Seeded {
  readonly dataDir: string;
  readonly path: string;
  /** Of desk `alpha`, whose signals they are. */
  readonly key: string;
  readonly keyId: string;
}

export interface SeedOptions {
  readonly signals: number;
  /** So many more signals are in the log, one a transaction, as a server that was killed leaves it. */
  readonly logged?: number;
  readonly dataDir?: string;
}

/** A larger database is made once per process, and kept in memory: all copies have one key. */
const SIGNALS_MADE = 1_000;
const templates = new Map<number, Seeded & { readonly bytes: Buffer }>();

/** Signal number `seq` has the `client_signal_id` {@link seededId}, in another order. */
export async function seed(options: SeedOptions): Promise<Seeded> {
  const { signals, logged = 0, dataDir = newDataDir() } = options;
  if (signals < SIGNALS_MADE || logged > 0) return make(options);
  let template = templates.get(signals);
  if (template === undefined) {
    const made = await make({ signals, dataDir: temporaryFolder() });
    template = { ...made, bytes: readFileSync(made.path) };
    templates.set(signals, template);
  }
  const { bytes, key, keyId } = template;
  mkdirSync(dataDir, { recursive: true, mode: 0o700 });
  const path = join(dataDir, DATABASE_NAME);
  writeFileSync(path, bytes, { mode: 0o600 });
  return { dataDir, path, key, keyId };
}

async function make({ signals, logged = 0, dataDir }: SeedOptions): Promise<Seeded> {
  const made = logged === 0 ? (dataDir ?? newDataDir()) : newDataDir();
  const db = openDatabase(made, "writer");
  try {
    const { key, keyId } = await mintKey(recordsIn(db).registry, "alpha", { label: "seed" });
    insertSignals(db, keyId, 1, signals);
    db.run("PRAGMA wal_checkpoint(TRUNCATE)");
    db.run("PRAGMA wal_autocheckpoint = 0");
    for (let seq = signals + 1; seq <= signals + logged; seq += 1) {
      insertSignals(db, keyId, seq, seq);
    }
    const left = logged === 0 ? made : leaveAsKilled(made, dataDir ?? newDataDir());
    return { dataDir: left, path: join(left, DATABASE_NAME), key, keyId };
  } finally {
    db.close();
  }
}

export function seededId(seq: number): string {
  return `${((seq * 2_654_435_761) % 4_294_967_296).toString(16).padStart(8, "0")}-${seq}`;
}

/** The `id` of signal number `seq`. */
export function seededUlid(seq: number): string {
  return `01HF7${String(seq).padStart(21, "0")}`;
}

/** In one transaction. */
function insertSignals(db: Database, keyId: string, from: number, to: number): void {
  const insert = db.query(
    `WITH RECURSIVE numbers (n) AS (SELECT ?1 UNION ALL SELECT n + 1 FROM numbers WHERE n < ?2)
     INSERT INTO signals (seq, id, desk_id, key_id, received_at, client_signal_id, source, type, symbol, side, price, metadata, hash)
     SELECT n, printf('01HF7%021d', n), 1, ?3, 1700000000000 + n, printf('%08x-%d', (n * 2654435761) % 4294967296, n),
       'venue_2', 'crypto', 'BTC/USDT', 'open', n / 4.0, printf('{"number":%d,"note":"%s"}', n, hex(zeroblob(n % 90))),
       ${NO_HASH}
     FROM numbers WHERE n <= ?2`,
  );
  db.transaction(() => {
    insert.run(from, to, keyId);
    hashSignals(db, from - 1);
  })();
}

/** The database and its log, without what a process in good order does when it closes them. */
function leaveAsKilled(from: string, to: string): string {
  mkdirSync(to, { recursive: true, mode: 0o700 });
  for (const name of [DATABASE_NAME, `${DATABASE_NAME}-wal`]) {
    copyFileSync(join(from, name), join(to, name));
  }
  return to;
}

export function newDataDir(): string {
  return join(temporaryFolder(), "data");
}

/** Runs statements, each with its values, as another program does. */
export function edit(
  path: string,
  ...statements: (string | [string, ...(string | number | Uint8Array)[]])[]
): void {
  const db = new Database(path);
  db.run("PRAGMA busy_timeout = 5000");
  for (const statement of statements) {
    const [sql, ...values] = typeof statement === "string" ? [statement] : statement;
    db.run(sql, values);
  }
  db.close();
}

/** {@link edit}, after which every signal has the hash of what it has now. */
export function editSignals(path: string, ...statements: Parameters<typeof edit>[1][]): void {
  edit(path, ...statements);
  using db = new Database(path);
  db.run("PRAGMA busy_timeout = 5000");
  hashSignals(db);
}

/** Gives two signals the same `client_signal_id`, behind the back of the unique index. */
export function storeTwice(path: string, [one, other]: readonly [number, number]): void {
  edit(
    path,
    ["UPDATE signals SET client_signal_id = 'twice-a' WHERE seq = ?", one],
    ["UPDATE signals SET client_signal_id = 'twice-b' WHERE seq = ?", other],
  );
  const bytes = readFileSync(path, "latin1").replaceAll("twice-b", "twice-a");
  writeFileSync(path, bytes, "latin1");
}

/** A key's id → a key minted, or a key revoked, with the database closed again after. */
export async function withRegistryOf<T>(
  dataDir: string,
  work: (registry: Records["registry"]) => Awaitable<T>,
): Promise<T> {
  using db = openDatabase(dataDir, "command");
  return await work(recordsIn(db).registry);
}

export interface TableContent {
  readonly rows: number;
  /** Of all values in all rows, in the order of their keys. */
  readonly digest: string;
}

/** What is in each table. */
export function contentOf(path: string): Record<"desks" | "api_keys" | "signals", TableContent> {
  const db = new Database(path, { readonly: true });
  try {
    return {
      desks: digest(db, "SELECT * FROM desks ORDER BY id"),
      api_keys: digest(db, "SELECT * FROM api_keys ORDER BY id"),
      signals: digest(db, "SELECT * FROM signals NOT INDEXED ORDER BY seq"),
    };
  } finally {
    db.close();
  }
}

function digest(db: Database, sql: string): TableContent {
  const hash = createHash("sha256");
  let rows = 0;
  for (const row of db.query<object, []>(sql).iterate()) {
    hash.update(JSON.stringify(row));
    rows += 1;
  }
  return { rows, digest: hash.digest("hex") };
}

/** The first leaf page of a table (13) or an index (10) that contains a text. */
export function changePage(
  path: string,
  kind: 13 | 10,
  text: string,
  work: (page: Buffer) => void,
): void {
  const bytes = readFileSync(path);
  for (let at = PAGE_BYTES; at < bytes.length; at += PAGE_BYTES) {
    const page = bytes.subarray(at, at + PAGE_BYTES);
    if (page[0] !== kind || !page.includes(text)) continue;
    work(page);
    writeFileSync(path, bytes);
    return;
  }
  throw new Error("no such page");
}

/** Makes a page forget its last cell (https://sqlite.org/fileformat2.html#b_tree_pages). */
export function dropLastCell(page: Buffer): void {
  page.writeUInt16BE(page.readUInt16BE(3) - 1, 3);
}

/** A copy that is being made: its temporary file, and the process that writes it. */
export interface Partial {
  readonly path: string;
  readonly pid: number;
}

/** Waits until a copy in a folder has so many bytes, and stops its process there. */
export async function holdCopy(folder: string, bytes = 1): Promise<Partial> {
  for (;;) {
    const partial = findPartial(folder);
    if (
      partial !== null &&
      (statSync(partial.path, { throwIfNoEntry: false })?.size ?? 0) >= bytes
    ) {
      process.kill(partial.pid, "SIGSTOP");
      onCleanup(() => killIfRunning(partial.pid));
      return partial;
    }
    await Bun.sleep(1);
  }
}

function findPartial(folder: string): Partial | null {
  if (!existsSync(folder)) return null;
  const name = readdirSync(folder).find((one) => one.endsWith(".signalbox-partial"));
  const pid = name === undefined ? null : processNamed(name);
  return name === undefined || pid === null ? null : { path: join(folder, name, "copy.db"), pid };
}

/** The process whose command line has this word. */
function processNamed(word: string): number | null {
  for (const pid of readdirSync("/proc").filter((name) => /^\d+$/.test(name))) {
    try {
      if (readFileSync(`/proc/${pid}/cmdline`, "utf8").includes(word)) return Number(pid);
    } catch {
      // It has ended.
    }
  }
  return null;
}

function killIfRunning(pid: number): void {
  try {
    process.kill(pid, "SIGKILL");
  } catch {
    // It has ended.
  }
}

/**
 * Damaged bits in the database and in its log. Damage is refused at the start or reported by `verify`, and no signal
 * that was changed is handed out; what nobody notices is a value of a desk or key that could be one.
 */
import { Database } from "bun:sqlite";
import { expect, test } from "bun:test";
import { cpSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { AppError } from "../../../src/domain/errors.ts";
import { readChunks } from "../../../src/domain/signal/chunks.ts";
import { fieldNames } from "../../../src/domain/signal/signal.ts";
import { everySignal } from "../../../src/domain/signal/stored-signal.ts";
import { UserError } from "../../../src/lib/errors.ts";
import { signals as readerOf } from "../../../src/store/records/signals/signals.ts";
import { verifyDatabase } from "../../../src/store/sqlite/copies/verify.ts";
import { isDamage } from "../../../src/store/sqlite/files/failures.ts";
import { openForReading } from "../../../src/store/sqlite/read/read.ts";
import { sqliteSql } from "../../../src/store/sqlite/sql.ts";
import { cli, mintKey, startServe } from "../../kit/cli.ts";
import { edit, editSignals, seed, seededId, seededUlid } from "../../store/_databases.ts";
import { seededRandom } from "../../kit/random.ts";
import { post, temporaryFolder } from "../../kit/setup.ts";
import * as damages from "./_damage.ts";
import { report, scale } from "../kit/faults.ts";

/** The same damage each time; another number tries other places. */
const SEED = Number(process.env["FLIPS_SEED"] ?? 20_261_121);

const DATABASE = "signalbox.db";
const SIGNALS = scale(2_000, 400);
const LOGGED = scale(600, 150);
const DAMAGES = scale(1_000, 45);
/** Of each verdict, one in so many is shown to the command line and to a server. */
const SHOWN_EVERY = scale(40, 25);
/** Signals that such a server gets again. */
const AGAIN = scale(60, 20);
/** Damage with so many whole frames behind it cannot look like a power cut. */
const SAFE_FRAMES = 2;

/** Columns in which no check can tell a wrong value from one that was stored. None is of a signal. */
const unchecked = new Set(
  `api_keys.label api_keys.last4 api_keys.created_at api_keys.expires_at api_keys.last_used_at api_keys.revoked_at
  desks.created_at desks.differing_duplicates`.split(/\s+/),
);

const OTHER_VALUE = "another value of a desk or key";

type Row = Readonly<Record<string, unknown>>;
type Content = readonly { readonly table: string; readonly rows: readonly Row[] }[];

/** From the tables, without any index. */
function contentOf(folder: string): Content {
  const db = new Database(join(folder, DATABASE), { readonly: true });
  try {
    return ["desks", "api_keys", "signals"].map((table) => ({
      table,
      rows: db.query<Row, []>(`SELECT * FROM ${table} NOT INDEXED ORDER BY rowid`).all(),
    }));
  } finally {
    db.close();
  }
}

/** The changed columns, as "signals.symbol"; "signals" if rows are missing or added. */
function changesBetween(before: Content, after: Content): Set<string> {
  const changes = new Set<string>();
  for (const [index, { table, rows }] of before.entries()) {
    const now = after[index]?.rows ?? [];
    if (now.length !== rows.length) changes.add(table);
    else {
      for (const [at, row] of rows.entries()) {
        for (const [column, value] of Object.entries(row)) {
          const changed = now[at]?.[column];
          if (Bun.deepEquals(value, changed, true)) continue;
          changes.add(`${table}.${column}`);
          // A revoked key must stay revoked.
          if (column === "revoked_at" && value !== null) expect(changed).toBeTruthy();
        }
      }
    }
  }
  return changes;
}

/** A data folder that no process has open. Signal number `seq` is that of {@link seed}. */
interface Subject {
  readonly folder: string;
  readonly signals: number;
  readonly key: string;
  readonly revokedKey: string | null;
}

async function closedSubject(): Promise<Subject> {
  const { dataDir, key } = await seed({ signals: SIGNALS });
  const { key: revokedKey, id } = await mintKey(dataDir, "beta");
  expect((await cli(["key", "revoke", id, "--data", dataDir])).code).toBe(0);
  return { folder: dataDir, signals: SIGNALS, key, revokedKey };
}

/** Returns a function that replaces a file of the subject in a copy of its folder. */
function copier({ folder }: Subject, name: string): (bytes: Buffer) => string {
  const copy = join(temporaryFolder(), "data");
  return (bytes) => {
    rmSync(copy, { recursive: true, force: true });
    cpSync(folder, copy, { recursive: true, filter: (file) => file !== join(folder, name) });
    writeFileSync(join(copy, name), bytes);
    return copy;
  };
}

/** `refused` is what every start sees. */
interface Verdict {
  readonly kind: "refused" | "reported" | "passed";
  readonly checks: readonly string[];
}

function judge(folder: string): Verdict {
  try {
    const { ok, checks } = verifyDatabase(join(folder, DATABASE));
    // A file whose tables were not read is one that no server starts on.
    const isRefused = checks["integrity"]?.ok === false && checks["values"]?.ok === null;
    return { kind: ok ? "passed" : isRefused ? "refused" : "reported", checks: failing(checks) };
  } catch (error) {
    if (!(error instanceof UserError)) throw error;
    return { kind: "refused", checks: [] };
  }
}

function failing(checks: object): string[] {
  const all = Object.entries(checks) as [string, { ok: boolean | null }][];
  return all.filter(([, { ok }]) => !ok).map(([name]) => name);
}

const ONE_SENTENCE = /^signalbox: [^\n]+\n$/;

/** The command says the same as the check in this process. */
async function expectSameOfCommand(folder: string, { kind, checks }: Verdict): Promise<void> {
  const { code, stdout, stderr } = await cli(["verify", "--json", "--data", folder]);
  expect(code).toBe(kind === "passed" ? 0 : 1);
  expect(stderr).toMatch(kind === "passed" ? /^$/ : ONE_SENTENCE);
  if (kind === "passed" || checks.length === 0) return;
  expect(failing((JSON.parse(stdout) as { checks: object }).checks)).toEqual([...checks]);
}

/** Starts a server on a damaged folder: it refuses in one sentence, ends itself, or answers rightly. */
async function serve(
  folder: string,
  { kind }: Verdict,
  { key, revokedKey, signals }: Subject,
): Promise<string> {
  const server = await startServe([], { dataDir: folder }).catch(() => null);
  if (server === null) {
    const args = ["serve", "--data", folder, "--listen", "127.0.0.1:0"];
    expect(await cli(args)).toEqual({
      code: 1,
      stdout: "",
      stderr: expect.stringMatching(ONE_SENTENCE),
    });
    return "refused to start";
  }
  expect(kind, "a server on a folder that its start must refuse").not.toBe("refused");
  const wrong: string[] = [];
  let right = 0;
  const ask = async (own: string, clientId: string, status: number, id?: string): Promise<void> => {
    const answer = await post(server.url, own, { client_signal_id: clientId }).catch(() => null);
    if (answer === null || answer.status === 503 || answer.status === 500) return;
    const isRight = answer.status === status && (id === undefined || answer.body["id"] === id);
    if (isRight) right += 1;
    else wrong.push(`${clientId}: ${answer.status} ${answer.text}, not ${status}`);
  };
  const step = Math.max(1, Math.floor(signals / AGAIN));
  for (let seq = 1; seq <= signals; seq += step) {
    await ask(key, seededId(seq), 200, seededUlid(seq));
  }
  await ask(key, "new", 201);
  if (revokedKey !== null) await ask(revokedKey, "revoked", 401);
  server.kill("SIGTERM");
  const code = await server.exited;
  if (code !== 0) {
    expect(code).toBe(1);
    expect(server.log().at(-1)).toMatchObject({ level: "fatal", reason: expect.any(String) });
  }
  if (kind === "passed") expect(wrong).toEqual([]);
  if (wrong.length > 0) return "gave wrong answers";
  if (code !== 0) return "ended itself";
  expect(right).toBeGreaterThan(0);
  return "answered rightly";
}

/** Counts by name. */
class Tally extends Map<string, number> {
  /** Returns the count before. */
  count(name: string): number {
    const before = this.get(name) ?? 0;
    this.set(name, before + 1);
    return before;
  }

  override toString(): string {
    return [...this].map(([name, count]) => `${name} ${count}`).join(", ");
  }
}

/** Damages one file of the subject again and again; `look` names what came of it. */
async function damageAll(
  subject: Subject,
  name: string,
  places: readonly damages.Place[],
  look: (
    folder: string,
    verdict: Verdict,
    done: damages.Damage,
  ) => Promise<{ seen: string; left?: number }>,
): Promise<Tally> {
  const whole = readFileSync(join(subject.folder, name));
  const put = copier(subject, name);
  const random = seededRandom(SEED);
  const tally = new Tally();
  for (let round = 0, made = 0; made < DAMAGES; round += 1) {
    const bytes = Buffer.from(whole);
    const place = places[round % places.length] as damages.Place;
    const kind = round % 11 === 10 ? "page" : round % 7 === 6 ? "sector" : "bit";
    const done = damages.damage(bytes, place, kind, random);
    if (done === null) continue;
    made += 1;
    const folder = put(bytes);
    const verdict = judge(folder);
    const { seen, left = subject.signals } = await look(folder, verdict, done);
    tally.count(`${kind}: ${seen}`);
    if (tally.count(seen) % SHOWN_EVERY > 0) continue;
    await expectSameOfCommand(put(bytes), verdict);
    const served = await serve(put(bytes), verdict, { ...subject, signals: left });
    tally.count(`${seen}; server ${served}`);
  }
  return tally;
}

/** Root pages of the small tables and indexes that every start reads, counted from 0. */
function pagesOfKeys(folder: string): number[] {
  const db = new Database(join(folder, DATABASE), { readonly: true });
  const sql =
    "SELECT rootpage FROM sqlite_schema WHERE rootpage > 0 AND tbl_name NOT IN ('signals', 'audit')";
  const pages = db.query(sql).values();
  db.close();
  return pages.map(([page]) => Number(page) - 1);
}

const signalColumns = ["id", "key_id", "received_at", ...fieldNames] as const;

/** Reads all signals as the feed and exports do. Returns how many it got, none of which was changed. */
async function readSignals(folder: string, stored: readonly Row[]): Promise<number> {
  const known = new Map(stored.map((row) => [row["id"], row]));
  const valuesOf = (row: Row | undefined) => signalColumns.map((column) => row?.[column]);
  const query = { deskId: null, filter: everySignal, order: "oldest", limit: Infinity } as const;
  let count = 0;
  try {
    using db = openForReading(join(folder, DATABASE));
    const reader = readerOf(sqliteSql({ reader: db }));
    for await (const chunk of readChunks(reader, query, { rows: 100, metadataUnits: 1e6 })) {
      for (const signal of chunk) {
        expect(valuesOf({ ...signal })).toEqual(valuesOf(known.get(signal.id)));
      }
      count += chunk.length;
    }
  } catch (error) {
    // Damaged, or not a database any more.
    if (!(error instanceof UserError || error instanceof AppError || isDamage(error))) throw error;
  }
  return count;
}

test("a damaged database is refused or reported, and no signal that was changed is handed out", async () => {
  const subject = await closedSubject();
  const content = contentOf(subject.folder);
  const bytes = readFileSync(join(subject.folder, DATABASE));
  const places = damages.placesInDatabase(bytes, pagesOfKeys(subject.folder));
  const stored = content.find(({ table }) => table === "signals")?.rows ?? [];
  let read = 0;
  const tally = await damageAll(subject, DATABASE, places, async (folder, { kind }, { place }) => {
    // A start checks the keys.
    if (place === "keys") expect(kind).not.toBe("reported");
    read += await readSignals(folder, stored);
    if (kind !== "passed") return { seen: kind };
    const changes = changesBetween(content, contentOf(folder));
    expect([...changes].filter((column) => !unchecked.has(column))).toEqual([]);
    return { seen: changes.size === 0 ? "without effect" : OTHER_VALUE };
  });
  for (const seen of ["refused", "reported", "without effect"]) {
    expect(tally.get(seen) ?? 0, seen).toBeGreaterThan(0);
  }
  expect(read).toBeGreaterThan(SIGNALS);
  // More than a bit is always noticed.
  for (const kind of ["sector", "page"]) expect(tally.has(`${kind}: ${OTHER_VALUE}`)).toBe(false);
  report(
    "bit flips, database",
    DAMAGES,
    `${String(tally)}; signals read ${read}, of them changed 0`,
  );
});

test("a damaged log is refused, unless it ends as a power cut could have left it", async () => {
  const { dataDir, key } = await seed({ signals: SIGNALS, logged: LOGGED });
  const subject = { folder: dataDir, signals: SIGNALS + LOGGED, key, revokedKey: null };
  const name = `${DATABASE}-wal`;
  const log = readFileSync(join(dataDir, name));
  const { commits, committedBefore } = damages.shapeOfLog(log);
  expect(commits.length).toBe(LOGGED);
  const putOther = copier(subject, name);
  const content = contentOf(putOther(log));
  const tally = await damageAll(
    subject,
    name,
    damages.placesInLog(log),
    async (folder, { kind }, done) => {
      const [first, last] = [damages.frameAt(done.from), damages.frameAt(done.to)];
      expect(kind).not.toBe("reported");
      if (last + SAFE_FRAMES <= committedBefore) expect([done, kind]).toEqual([done, "refused"]);
      if (kind === "refused") return { seen: kind };
      const after = contentOf(folder);
      if (changesBetween(content, after).size === 0) return { seen: "without effect" };
      // The log counts up to the last transaction that is whole.
      const whole = commits.findLastIndex((commit) => commit < first) + 1;
      const cut = log.subarray(0, damages.startOfFrame((commits[whole - 1] ?? 0) + 1));
      const there = contentOf(putOther(Buffer.from(cut)));
      expect(changesBetween(there, after)).toEqual(new Set());
      const seen = first > committedBefore ? "last transaction lost" : "last two or three lost";
      return { seen, left: SIGNALS + whole };
    },
  );
  for (const seen of ["refused", "last transaction lost"]) {
    expect(tally.get(seen) ?? 0, seen).toBeGreaterThan(0);
    expect(tally.has(`${seen}; server gave wrong answers`)).toBe(false);
  }
  report("bit flips, log", DAMAGES, String(tally));
});

/** The seeded signal number 10, with a value in each field, and where the last byte of each is. */
async function oneSignal() {
  const { dataDir, path } = await seed({ signals: 20 });
  editSignals(
    path,
    `UPDATE signals SET symbol = 'FLIPPED/USDT', direction = 'long', price = 64000.5, quantity = 0.25,
       signal_time = 1790000000123, metadata = '{"note":"once"}' WHERE seq = 10`,
  );
  // Leaves no earlier version of the row in the file.
  edit(path, "VACUUM");
  const id = seededUlid(10);
  const [row = {}] = contentOf(dataDir)[2]?.rows.filter((one) => one["id"] === id) ?? [];
  const bytes = readFileSync(path);
  const start = bytes.lastIndexOf(id, bytes.indexOf("FLIPPED/USDT"), "latin1");
  const at = new Map<string, number>();
  for (const [column, value] of Object.entries(row)) {
    const written = writtenAs(column, value);
    if (written !== null) at.set(column, bytes.indexOf(written, start) + written.length - 1);
  }
  // The record's header has a byte per column: a 1 is nothing but its type.
  at.set("desk_id", start - Object.keys(row).length + 2);
  return { dataDir, path, bytes, id, at };
}

/** https://sqlite.org/fileformat2.html#record_format. Null: no bytes of its own. */
function writtenAs(column: string, value: unknown): Uint8Array | null {
  if (column === "seq" || column === "desk_id") return null;
  if (value instanceof Uint8Array) return value;
  if (typeof value !== "number") return Buffer.from(String(value));
  const written = Buffer.alloc(8);
  if (!Number.isInteger(value)) written.writeDoubleBE(value);
  else written.writeBigInt64BE(BigInt(value));
  return Number.isInteger(value) ? written.subarray(2) : written;
}

test("a flipped bit in any value of a signal is named by commands and the feed, and is not handed out", async () => {
  const { dataDir, path, bytes, id, at } = await oneSignal();
  expect([...at.keys()].toSorted()).toEqual(
    ["id", "desk_id", "key_id", "received_at", ...fieldNames, "hash"].toSorted(),
  );
  const exported = await cli(["signals", "export", "--data", dataDir]);
  const before = exported.stdout.slice(0, exported.stdout.indexOf(`{"id":"${id}"`));
  for (const [column, place] of at) {
    const damaged = Buffer.from(bytes);
    damaged[place] = (damaged[place] ?? 0) ^ 1;
    writeFileSync(path, damaged);
    const { code, stdout, stderr } = await cli(["signals", "export", "--data", dataDir]);
    expect([column, code, stdout]).toEqual([column, 1, before]);
    expect(stderr).toContain(`Signal ${id} is damaged`);
    const verified = await cli(["verify", "--data", dataDir]);
    expect([column, verified.code]).toEqual([column, 1]);
    if (column !== "price") continue;
    const server = await startServe([], { dataDir });
    const read = async (search: string) => {
      const answer = await fetch(`http://localhost/feed?${search}`, {
        unix: join(dataDir, "ops.sock"),
      });
      return [answer.status, await answer.text()] as const;
    };
    const [status, text] = await read("");
    expect([status, text]).toEqual([200, `${before}{"next":"${seededUlid(9)}","done":false}\n`]);
    const error = { error: "damaged_signal", message: expect.stringContaining(id) };
    const [refused, body] = await read(`after=${seededUlid(9)}`);
    expect([refused, JSON.parse(body)]).toEqual([409, error]);
    const [, rest] = await read(`after=${id}`);
    expect(rest.split("\n")).toHaveLength(10 + 2);
    server.kill("SIGTERM");
    await server.exited;
  }
  report("a flipped bit in a signal", at.size, `each of ${[...at.keys()].join(", ")} is named`);
});

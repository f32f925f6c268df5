/**
 * Damaged bits in the database and in its log. Damage that a check can see is refused at the start or
 * reported by `verify`; what nobody notices is a value that could have been sent.
 */
import { Database } from "bun:sqlite";
import { expect, test } from "bun:test";
import { cpSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { UserError } from "../../../src/lib/errors.ts";
import { verifyDatabase } from "../../../src/store/sqlite/copies/verify.ts";
import { cli, mintKey, startServe } from "../../kit/cli.ts";
import { seed, seededId, seededUlid } from "../../store/_databases.ts";
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

/** Columns in which no check can tell a wrong value from one that was stored. */
const unchecked = new Set(
  `signals.received_at signals.source signals.symbol signals.price signals.quantity signals.signal_time signals.metadata
  api_keys.label api_keys.last4 api_keys.created_at api_keys.expires_at api_keys.last_used_at api_keys.revoked_at
  desks.created_at desks.differing_duplicates`.split(/\s+/),
);

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
  look: (folder: string, verdict: Verdict, done: damages.Damage) => { seen: string; left?: number },
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
    const { seen, left = subject.signals } = look(folder, verdict, done);
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

test("a damaged database is refused or reported, unless a value has become another value", async () => {
  const subject = await closedSubject();
  const content = contentOf(subject.folder);
  const bytes = readFileSync(join(subject.folder, DATABASE));
  const places = damages.placesInDatabase(bytes, pagesOfKeys(subject.folder));
  const tally = await damageAll(subject, DATABASE, places, (folder, { kind }, { place }) => {
    // A start checks the keys.
    if (place === "keys") expect(kind).not.toBe("reported");
    if (kind !== "passed") return { seen: kind };
    const changes = changesBetween(content, contentOf(folder));
    expect([...changes].filter((column) => !unchecked.has(column))).toEqual([]);
    return { seen: changes.size === 0 ? "without effect" : "another value" };
  });
  for (const seen of ["refused", "reported", "without effect", "another value"]) {
    expect(tally.get(seen) ?? 0, seen).toBeGreaterThan(0);
  }
  // More than a bit is always noticed.
  for (const kind of ["sector", "page"]) expect(tally.has(`${kind}: another value`)).toBe(false);
  report("bit flips, database", DAMAGES, String(tally));
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
    (folder, { kind }, done) => {
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

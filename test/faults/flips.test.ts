/**
 * Bits that a disk gives back otherwise than they were written, in the database and in its log: what a
 * check can see is refused at the start or reported by `verify`; what is served in silence is a value
 * that nothing can check, and how often that happens is said here.
 */
import { Database } from "bun:sqlite";
import { expect, setDefaultTimeout, test } from "bun:test";
import { cpSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { UserError } from "../../src/domain/errors.ts";
import { DATABASE_NAME } from "../../src/store/sqlite/folder.ts";
import { verifyDatabase } from "../../src/store/sqlite/verify.ts";
import { cli, mintKey, startServe } from "../_cli.ts";
import { temporaryFolder } from "../_setup.ts";
import { type Acknowledged, ask, sendSignals } from "./_acknowledged.ts";
import {
  damage,
  type Damage,
  frameAt,
  type Kind,
  type Place,
  placesInDatabase,
  placesInLog,
  shapeOfLog,
  startOfFrame,
} from "./_damage.ts";
import { report, scale } from "./_faults.ts";
import { type Content, type Difference, differences, readContent } from "./_ledger.ts";
import { type Random, seededRandom } from "./_random.ts";

setDefaultTimeout(400_000);

/** The same places each time; another number tries others. */
const SEED = Number(process.env["FLIPS_SEED"] ?? 20_261_121);

const LOG_NAME = `${DATABASE_NAME}-wal`;
const SIGNALS = scale(2_000, 400);
const LOGGED = scale(600, 150);
/** Looked at by `verify` in this process. */
const DAMAGES = scale(1_000, 45);
/** Of each kind of verdict, one in so many is shown to the command line and to a server, too. */
const SHOWN_EVERY = scale(40, 25);
const AGAIN = scale(60, 20);

const ANY_PORT = "127.0.0.1:0";
/** With so many whole frames between a damage and the last transaction, what is behind it proves it. */
const SAFE_FRAMES = 2;

/** What no check can tell from what was sent: any other value would do as well. */
const unseen: ReadonlySet<string> = new Set([
  ...["received_at", "source", "symbol", "price", "quantity", "signal_time", "metadata"].map(
    (column) => `signals.${column}`,
  ),
  ...["label", "last4", "created_at", "expires_at", "last_used_at", "revoked_at"].map(
    (column) => `api_keys.${column}`,
  ),
  ...["created_at", "differing_duplicates"].map((column) => `desks.${column}`),
]);

/** A data folder that nobody has open, and all that is known of it. */
interface Subject {
  readonly folder: string;
  readonly content: Content;
  readonly acknowledged: readonly Acknowledged[];
  readonly keys: string[];
  readonly revoked: string[];
}

/** Of a server that has stopped in good order. */
async function makeClosed(): Promise<Subject> {
  const folder = join(temporaryFolder(), "data");
  const desks = ["alpha", "beta", "gamma"];
  const minted: { key: string; id: string }[] = [];
  for (const desk of [...desks, ...desks]) minted.push(await mintKey(folder, desk));
  const [kept, doomed] = [minted.slice(0, 3), minted.slice(3)];
  const server = await startServe([], { dataDir: folder });
  const keys = minted.map(({ key }) => key);
  const acknowledged = await sendSignals(server.url, keys, { from: 0, count: SIGNALS });
  for (const { id } of doomed) await cli(["key", "revoke", id, "--data", folder]);
  server.kill("SIGTERM");
  expect(await server.exited).toBe(0);
  expect(acknowledged.length).toBe(SIGNALS);
  const usable = new Set(kept.map(({ key }) => key));
  return {
    folder,
    content: readContent(join(folder, DATABASE_NAME)),
    // With a revoked key it is 401 whatever is there.
    acknowledged: acknowledged.filter(({ key }) => usable.has(key)),
    keys: [...usable],
    revoked: doomed.map(({ key }) => key),
  };
}

/** Of a server that was killed under load, with a log. */
async function makeKilled(closed: Subject): Promise<Subject> {
  const folder = join(temporaryFolder(), "data");
  cpSync(closed.folder, folder, { recursive: true });
  const server = await startServe([], { dataDir: folder });
  const first = await sendSignals(server.url, closed.keys, { from: SIGNALS, count: LOGGED });
  const more = sendSignals(server.url, closed.keys, { from: SIGNALS + LOGGED, count: SIGNALS });
  await Bun.sleep(20);
  server.kill("SIGKILL");
  expect(await server.exited).toBe("SIGKILL");
  for (const name of [`${DATABASE_NAME}-shm`, "ops.sock"])
    rmSync(join(folder, name), { force: true });
  const acknowledged = [...closed.acknowledged, ...first, ...(await more)];
  const content = readContentOf(folder);
  const stored = new Set(content.signals.map(({ id }) => id));
  expect(acknowledged.filter(({ id }) => !stored.has(id))).toEqual([]);
  return { ...closed, folder, content, acknowledged };
}

/** Looking at a database makes files beside it. */
function readContentOf(folder: string): Content {
  const copy = temporaryFolder();
  cpSync(folder, copy, { recursive: true });
  return readContent(join(copy, DATABASE_NAME));
}

/** Damaged copies, one after the other in the same folder. */
class Copies {
  readonly whole: Buffer;
  readonly #subject: Subject;
  readonly #name: string;
  readonly #folder = join(temporaryFolder(), "data");

  constructor(subject: Subject, name: string) {
    this.#subject = subject;
    this.#name = name;
    this.whole = readFileSync(join(subject.folder, name));
  }

  put(bytes: Buffer): string {
    rmSync(this.#folder, { recursive: true, force: true });
    const replaced = join(this.#subject.folder, this.#name);
    cpSync(this.#subject.folder, this.#folder, {
      recursive: true,
      filter: (file) => file !== replaced,
    });
    writeFileSync(join(this.#folder, this.#name), bytes);
    return this.#folder;
  }
}

type Verdict =
  /** At a glance, and so at every start. */
  | { readonly kind: "refused" }
  | { readonly kind: "reported"; readonly checks: readonly string[] }
  | { readonly kind: "passed" };

function judge(folder: string): Verdict {
  try {
    const { ok, checks } = verifyDatabase(join(folder, DATABASE_NAME));
    if (ok) return { kind: "passed" };
    const failing = Object.entries(checks).filter(([, check]) => !check.ok);
    return { kind: "reported", checks: failing.map(([name]) => name) };
  } catch (error) {
    if (!(error instanceof UserError)) throw error;
    expect(error.message).not.toContain("\n");
    return { kind: "refused" };
  }
}

/** How often what was seen. */
class Tally {
  readonly #counts = new Map<string, number>();

  /** Returns how often it was there before. */
  count(name: string): number {
    const before = this.of(name);
    this.#counts.set(name, before + 1);
    return before;
  }

  of(name: string): number {
    return this.#counts.get(name) ?? 0;
  }

  list(prefix = ""): string {
    const named = [...this.#counts].filter(([name]) => name.startsWith(prefix));
    const told = named
      .toSorted(([, a], [, b]) => b - a)
      .map(([name, count]) => `${name.slice(prefix.length)} ${count}`);
    return told.join(", ") || "none";
  }
}

const kindOf = (round: number): Kind => {
  if (round % 11 === 10) return "page";
  return round % 7 === 6 ? "sector" : "bit";
};

/** Each round is another damage; those that change nothing, zeros in the place of zeros, do not count. */
function* damagedCopies(
  copies: Copies,
  places: readonly Place[],
  { count, random }: { count: number; random: Random },
): Generator<{ folder: string; done: Damage; bytes: Buffer }> {
  for (let round = 0, made = 0; made < count; round += 1) {
    const bytes = Buffer.from(copies.whole);
    const place = places[round % places.length];
    const done = place === undefined ? null : damage(bytes, place, kindOf(round), random);
    if (done === null) continue;
    made += 1;
    yield { folder: copies.put(bytes), done, bytes };
  }
}

const isOneSentence = /^signalbox: [^\n]+\n$/;

/** The command line says the same as the check in this process. */
async function expectSameOfCommand(folder: string, verdict: Verdict): Promise<void> {
  const { code, stdout, stderr } = await cli(["verify", "--json", "--data", folder]);
  if (verdict.kind === "passed") expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
  else expect({ code, stderr }).toEqual({ code: 1, stderr: expect.stringMatching(isOneSentence) });
  if (verdict.kind !== "reported") return;
  const { checks } = JSON.parse(stdout) as { checks: Record<string, { ok: boolean }> };
  const failing = Object.entries(checks).filter(([, { ok }]) => !ok);
  expect(failing.map(([name]) => name)).toEqual([...verdict.checks]);
}

/**
 * Starts a server on a damaged folder. Either it refuses in one sentence, or it answers: rightly
 * wherever `verify` has nothing to say. Returns what it did.
 */
async function serve(
  folder: string,
  verdict: Verdict,
  questions: Parameters<typeof ask>[1],
): Promise<string> {
  const server = await startServe([], { dataDir: folder }).catch(() => null);
  if (server === null) {
    const { code, stdout, stderr } = await cli(["serve", "--data", folder, "--listen", ANY_PORT]);
    expect({ code, stdout }).toEqual({ code: 1, stdout: "" });
    expect(stderr).toMatch(isOneSentence);
    return "refused to start";
  }
  expect(verdict.kind, "a server on what its start should refuse").not.toBe("refused");
  const { right, none, wrong } = await ask(server.url, questions);
  server.kill("SIGTERM");
  const code = await server.exited;
  if (code !== 0) {
    expect(code).toBe(1);
    expect(server.log().at(-1)).toMatchObject({ level: "fatal", reason: expect.any(String) });
  }
  if (verdict.kind === "passed") expect(wrong).toEqual([]);
  if (wrong.length > 0) return "gave wrong answers";
  if (code !== 0) return "ended itself";
  if (none > 0) return "answered with 5xx";
  expect(right).toBeGreaterThan(0);
  return "answered rightly";
}

/** What to send: signals that are there, all of them where some may be hard to find, and every key. */
function questionsFor(
  { acknowledged, keys, revoked }: Subject,
  { there, isAll, random }: { there: Content; isAll: boolean; random: Random },
): Parameters<typeof ask>[1] {
  const ids = new Set(there.signals.map(({ id }) => id));
  const kept = acknowledged.filter(({ id }) => ids.has(id));
  const from = Math.floor(random() * (kept.length - AGAIN));
  return { again: isAll ? kept : kept.slice(from, from + AGAIN), keys, revoked };
}

/** Only values that nothing can check, and no key that was revoked is one again. */
function expectUnseen(found: readonly Difference[]): string[] {
  const places = [...new Set(found.map(({ where }) => where))];
  expect(places.filter((where) => !unseen.has(where))).toEqual([]);
  const freed = found.filter(
    ({ where, before, after }) => where === "api_keys.revoked_at" && before !== null && !after,
  );
  expect(freed).toEqual([]);
  return places;
}

/** Roots of the tables and indexes that a start looks at: each is a page or two. Counted from 0. */
function pagesOfKeys(folder: string): number[] {
  const db = new Database(join(folder, DATABASE_NAME), { readonly: true });
  try {
    const sql =
      "SELECT rootpage FROM sqlite_schema WHERE rootpage > 0 AND tbl_name NOT IN ('signals', 'audit')";
    return db
      .query(sql)
      .values()
      .map(([page]) => Number(page) - 1);
  } finally {
    db.close();
  }
}

test("a damaged database is refused or reported, but where a value is another value", async () => {
  const subject = await makeClosed();
  const copies = new Copies(subject, DATABASE_NAME);
  const places = placesInDatabase(copies.whole, pagesOfKeys(subject.folder));
  const random = seededRandom(SEED);
  const tally = new Tally();
  const checks = new Tally();
  const values = new Tally();
  for (const { folder, done, bytes } of damagedCopies(copies, places, { count: DAMAGES, random })) {
    const verdict = judge(folder);
    let seen: string = verdict.kind;
    if (verdict.kind === "passed") {
      const after = readContent(join(folder, DATABASE_NAME));
      const found = expectUnseen(differences(subject.content, after));
      if (found.length > 0) seen = "silent";
      for (const where of found) values.count(where);
    }
    // At every start, not only where somebody asks for it.
    if (done.place === "keys") expect(verdict.kind).not.toBe("reported");
    if (verdict.kind === "reported") for (const name of verdict.checks) checks.count(name);
    tally.count(`${done.kind}: ${seen}`);
    if (tally.count(seen) % SHOWN_EVERY > 0) continue;
    await expectSameOfCommand(copies.put(bytes), verdict);
    const isAll = verdict.kind === "reported";
    const questions = questionsFor(subject, { there: subject.content, isAll, random });
    tally.count(`${seen}; server ${await serve(copies.put(bytes), verdict, questions)}`);
  }
  for (const seen of ["refused", "reported", "passed", "silent"]) {
    expect(tally.of(seen), seen).toBeGreaterThan(0);
  }
  // Of what is more than a bit, some part always shows.
  for (const kind of ["sector", "page"]) expect(tally.of(`${kind}: silent`), kind).toBe(0);
  report(
    "bit flips, database",
    DAMAGES,
    `refused at start ${tally.of("refused")}, reported by verify ${tally.of("reported")} (${checks.list()}), without any effect ${tally.of("passed")}, another value in silence ${tally.of("silent")} (${values.list()}); bits: ${tally.list("bit: ")}; sectors: ${tally.list("sector: ")}; pages: ${tally.list("page: ")}; servers on refused ones: ${tally.list("refused; server ")}; on reported ones: ${tally.list("reported; server ")}; on those without effect: ${tally.list("passed; server ")}; on silent ones: ${tally.list("silent; server ")}`,
  );
});

test("a damaged log is refused, but where it ends as a power cut could have left it", async () => {
  const subject = await makeKilled(await makeClosed());
  const copies = new Copies(subject, LOG_NAME);
  const shape = shapeOfLog(copies.whole);
  expect(shape.committedBefore).toBeGreaterThan(SAFE_FRAMES);
  /** What is there without the transaction that a frame is in, and all that came after it. */
  const without = (frame: number): Content => {
    const whole = shape.commits.findLast((commit) => commit < frame) ?? 0;
    const bytes = Buffer.from(copies.whole.subarray(0, startOfFrame(whole + 1)));
    return readContent(join(copies.put(bytes), DATABASE_NAME));
  };
  const random = seededRandom(SEED);
  const tally = new Tally();
  const places = placesInLog(copies.whole);
  for (const { folder, done, bytes } of damagedCopies(copies, places, { count: DAMAGES, random })) {
    const verdict = judge(folder);
    let there = subject.content;
    let seen = verdict.kind === "refused" ? "refused" : "without effect";
    const [first, last] = [frameAt(done.from), frameAt(done.to)];
    expect(verdict.kind).not.toBe("reported");
    if (last + SAFE_FRAMES <= shape.committedBefore)
      expect([done, seen]).toEqual([done, "refused"]);
    if (verdict.kind === "passed") {
      const after = readContent(join(folder, DATABASE_NAME));
      if (differences(subject.content, after).length > 0) {
        seen = first > shape.committedBefore ? "last transaction lost" : "last two or three lost";
        there = without(first);
        expect(differences(there, after)).toEqual([]);
      }
    }
    tally.count(`${done.kind}: ${seen}`);
    if (tally.count(seen) % SHOWN_EVERY > 0) continue;
    await expectSameOfCommand(copies.put(bytes), verdict);
    const questions = questionsFor(subject, { there, isAll: false, random });
    tally.count(`${seen}; server ${await serve(copies.put(bytes), verdict, questions)}`);
  }
  for (const seen of ["refused", "last transaction lost"]) {
    expect(tally.of(seen), seen).toBeGreaterThan(0);
    expect(tally.of(`${seen}; server gave wrong answers`)).toBe(0);
  }
  report(
    "bit flips, log",
    DAMAGES,
    `refused at start ${tally.of("refused")}; as after a power cut, without the last transaction ${tally.of("last transaction lost")}; in the frames just before it, without that transaction too ${tally.of("last two or three lost")}; without any effect ${tally.of("without effect")}; bits: ${tally.list("bit: ")}; sectors: ${tally.list("sector: ")}; pages: ${tally.list("page: ")}; servers on refused ones: ${tally.list("refused; server ")}; on the others: ${tally.list("last transaction lost; server ")}; never a row that is not what it was`,
  );
});

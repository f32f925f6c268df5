/** What came of an attack, and the inspection of the server after it. */
import { signal } from "../_setup.ts";
import { tellsOfInternals } from "./answers.ts";
import { Connection, type Reply } from "./connections.ts";
import { Ledger } from "./ledger.ts";
import { headOf, messageOf } from "./messages.ts";
import { judge } from "./oracle.ts";
import { codedMarkersIn, type Exhibits, filesOf, keysIn, markersIn } from "./secrets.ts";
import { healthOf, type Target, unknownKey } from "./target.ts";

const SHOWN_MAX = 10;
const SHOWN_CHARACTERS_MAX = 1_000;

export class Report {
  readonly problems: string[] = [];
  readonly ledger = new Ledger();
  /** How often each status was seen; `null` is no answer. */
  readonly statuses = new Map<number | null, number>();
  readonly #told: string[] = [];

  /** Enters an answer, and what is wrong with it. */
  enter(name: string, reply: Reply | null, problem: string | null): void {
    const status = reply?.status ?? null;
    this.statuses.set(status, (this.statuses.get(status) ?? 0) + 1);
    if (problem !== null) this.problems.push(`${name}: ${problem}`);
    if (reply === null) return;
    this.#told.push([...reply.headers].join("\n"), withoutNames(reply));
  }

  /** Enters what was said in another way. */
  hear(text: string): void {
    this.#told.push(text);
  }

  get told(): string {
    return this.#told.join("\n");
  }

  count(...statuses: (number | null)[]): number {
    return statuses.reduce<number>((sum, status) => sum + (this.statuses.get(status) ?? 0), 0);
  }
}

/** The names of unknown fields are the client's own words, and go to nobody else. */
function withoutNames({ status, text }: Reply): string {
  if (status !== 422) return text;
  return Object.values((JSON.parse(text) as { fields: object }).fields).join("\n");
}

/**
 * Stops the server and returns what is wrong: it does not work, its log complains, its promises are
 * not kept, or something that was sent is where it does not belong. `otherKeys`: besides its own.
 */
export async function inspect(
  target: Target,
  report: Report,
  otherKeys: readonly string[] = [],
): Promise<string[]> {
  const all = await problemsOf(target, report, [...keysOf(target), ...otherKeys]);
  const shown = all.slice(0, SHOWN_MAX).map((problem) => problem.slice(0, SHOWN_CHARACTERS_MAX));
  return all.length > SHOWN_MAX ? [...shown, `and ${all.length - SHOWN_MAX} more`] : shown;
}

async function problemsOf(
  target: Target,
  report: Report,
  keys: readonly string[],
): Promise<string[]> {
  const problems = [...report.problems];
  problems.push(...(await healthProblems(target, report)));
  const running = filesOf(target.dataDir, "running");
  target.process.kill("SIGTERM");
  const code = await target.process.exited;
  if (code !== 0) problems.push(`the server ended with ${code}`);
  const { stdout, stderr } = target.process.output;
  for (const { level, msg } of target.process.log()) {
    if (/error|fatal/.test(level)) problems.push(`the log has: ${level} ${msg}`);
  }
  problems.push(...report.ledger.problems(target.dataDir));
  const texts: Exhibits = new Map([
    ["the log", Buffer.from(stderr)],
    ["stdout", Buffer.from(stdout)],
    ["what was said", Buffer.from(report.told)],
  ]);
  const files: Exhibits = new Map([...running, ...filesOf(target.dataDir, "stopped")]);
  const all: Exhibits = new Map([...files, ...texts]);
  for (const [name, bytes] of texts) {
    problems.push(...markersIn(bytes.toString("latin1")).map((one) => `${one} in ${name}`));
  }
  problems.push(...strayMarkers(report, files), ...codedMarkersIn(all), ...keysIn(all, keys));
  // What the database has instead of keys is for nobody else.
  problems.push(...keysIn(texts, keys.map(hashOf)));
  return problems;
}

async function healthProblems(target: Target, report: Report): Promise<string[]> {
  const { key, desk, keyId } = target.alpha;
  const head = headOf("POST /v1/signals HTTP/1.1", [
    `Authorization: Bearer ${key}`,
    "Content-Type: application/json",
  ]);
  const body = Buffer.from(JSON.stringify(signal));
  const connection = new Connection(target.port);
  const reply = await connection.exchange(messageOf(head, body, null));
  connection.close();
  const verdict = judge(body);
  if (reply?.status !== 201 || verdict.status !== 201)
    return [`a good signal got ${reply?.status}`];
  report.ledger.answered({ name: "a good signal", desk, keyId, row: verdict.row }, reply);
  const { status, text } = await healthOf(target);
  report.hear(text);
  return status === 200 && !tellsOfInternals(text) ? [] : [`its readiness is ${status}: ${text}`];
}

function hashOf(key: string): string {
  return new Bun.CryptoHasher("sha256").update(key).digest("hex");
}

/** None of these may be found anywhere. */
function keysOf({ alpha, beta, revokedKey }: Target): string[] {
  return [alpha.key, beta.key, revokedKey, unknownKey];
}

/** A marker in a file is that of a body, and the body was stored. Pages keep parts of what was moved. */
function strayMarkers({ ledger }: Report, files: Exhibits): string[] {
  const stored = ledger.storedMarkers;
  return [...files].flatMap(([file, bytes]) =>
    markersIn(bytes.toString("latin1"))
      .filter((one) => one !== "part" && !stored.has(one))
      .map((one) => `${one} in ${file}`),
  );
}

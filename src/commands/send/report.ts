/** What `signalbox send FILE` says: which signals are refused, and what became of the others. */
import { fstatSync, ftruncateSync, openSync, readSync, writeSync } from "node:fs";
import ms from "ms";
import { systemCode, UsageError, UserError } from "../../lib/errors.ts";
import { describeRefusal, type Refusal, refusalOf } from "../../send/body.ts";
import type { Input } from "../../send/input.ts";
import { type Outcome, sentence, TargetError } from "../../send/sender.ts";
import { count, plural, printNote } from "../../cli/print.ts";

/** Refusals, and duplicates that differ, shown on stderr. */
const SHOWN_MAX = 10;

/** The first of many notes, and how many there are. */
class Notes {
  readonly first: string[] = [];
  count = 0;

  add(note: string): void {
    this.count += 1;
    if (this.count <= SHOWN_MAX) this.first.push(note);
  }

  get more(): number {
    return this.count - this.first.length;
  }
}

/** The refused signals: the first few are shown, all are written to the file of `--refused`. */
export class Refusals {
  readonly #notes = new Notes();
  readonly #file: string | undefined;
  readonly #descriptor: number | null;

  constructor(input: Input, file: string | undefined) {
    this.#file = file;
    this.#descriptor = file === undefined ? null : this.#open(input, file);
  }

  #open(input: Input, file: string): number {
    if (input.isSame(file)) {
      throw new UsageError(`${file} is the input: name another file with --refused FILE.`);
    }
    try {
      const descriptor = openSync(file, "a+", 0o600);
      if (fstatSync(descriptor).isFile()) {
        refuseOther(file, descriptor);
        ftruncateSync(descriptor);
      }
      return descriptor;
    } catch (error) {
      throw error instanceof UserError ? error : this.#unwritable(error);
    }
  }

  add(refusal: Refusal): void {
    const reason = describeRefusal(refusal).replace(/^The body /, "The line ");
    this.#notes.add(`line ${refusal.line}: ${reason}`);
    if (this.#descriptor === null) return;
    try {
      writeSync(this.#descriptor, `${JSON.stringify(refusal)}\n`);
    } catch (error) {
      throw this.#unwritable(error);
    }
  }

  #unwritable(error: unknown): UserError {
    return new UserError(
      `${this.#file} cannot be written (${systemCode(error)}): name another file with --refused FILE.`,
    );
  }

  print(): void {
    const { first, count: total, more } = this.#notes;
    first.forEach(printNote);
    if (total > 0 && this.#file !== undefined) printNote(`All are in ${this.#file}.`);
    else if (more > 0) printNote(`and ${count(more)} more: list all with --refused FILE`);
  }
}

/** Any other file may be precious, such as that of the key. */
function refuseOther(file: string, descriptor: number): void {
  const start = Buffer.alloc(64);
  const length = readSync(descriptor, start, 0, start.length, 0);
  if (length === 0 || /^\{"line":\d+,"status":/.test(start.toString())) return;
  throw new UserError(
    `${file} is not a list of refused signals, and was left as it is: name another file with --refused FILE.`,
  );
}

export class Results {
  readonly #signals: number;
  readonly #refusals: Refusals;
  readonly #outcomes = { stored: 0, duplicate: 0, refused: 0, unknown: 0, "not sent": 0 };
  /** Duplicates whose content differs from the stored signal's. */
  readonly #differing = new Notes();
  #lastFailure = "";

  constructor(signals: number, refusals: Refusals) {
    this.#signals = signals;
    this.#refusals = refusals;
  }

  add(line: number, outcome: Outcome): void {
    this.#outcomes[outcome.kind] += 1;
    if (outcome.kind === "refused") {
      this.#refusals.add(refusalOf(line, outcome.status, outcome.answer));
    } else if ("reason" in outcome) {
      this.#lastFailure = sentence(outcome.reason);
    } else if (outcome.differs.length > 0) {
      this.#differing.add(`line ${line}: ${outcome.differs.join(", ")}`);
    }
  }

  /** As `--json` prints them. */
  get counts() {
    const { stored, duplicate: duplicates, refused, unknown } = this.#outcomes;
    return {
      signals: this.#signals,
      stored,
      duplicates,
      duplicates_differing: this.#differing.count,
      refused,
      unknown,
      not_sent: this.#signals - stored - duplicates - refused - unknown,
    };
  }

  get isComplete(): boolean {
    const { signals, stored, duplicates } = this.counts;
    return stored + duplicates === signals;
  }

  print(name: string, durationMs: number): void {
    const { stored, duplicates, refused, unknown, not_sent } = this.counts;
    this.#refusals.print();
    printNote(
      `${name}: ${count(stored)} stored, ${plural(duplicates, "duplicate")}, ${count(refused)} refused, ${count(unknown)} unknown, ${count(not_sent)} not sent, in ${ms(durationMs)}.`,
    );
    const { first, count: differing, more } = this.#differing;
    if (differing === 0) return;
    const lines = more > 0 ? [...first, `and ${count(more)} more`] : first;
    printNote(
      `${plural(differing, "duplicate")} ${differing === 1 ? "differs" : "differ"} from the stored signal (${lines.join("; ")}).`,
    );
  }

  /** `stoppedBy`: why sending stopped before the end, or null. */
  describeProblems(stoppedBy: UserError | null, resume: string): string {
    const { refused, unknown, not_sent } = this.counts;
    const problems = [stoppedBy?.message ?? this.#lastFailure];
    if (refused > 0) {
      problems.push(
        `The server refused ${plural(refused, "signal")}: correct them in a new file, and send that.`,
      );
    }
    if (unknown + not_sent > 0) {
      const isWrong = stoppedBy instanceof TargetError;
      problems.push(
        `${isWrong ? "With that changed, resume" : "Resume"} with the same ids, so that nothing is stored twice: ${resume}`,
      );
    }
    return problems.filter((problem) => problem !== "").join(" ");
  }
}

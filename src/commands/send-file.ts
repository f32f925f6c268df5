/** `signalbox send FILE`: checks all signals of a file, sends them and reports what became of them. */
import { openSync, writeSync } from "node:fs";
import ms from "ms";
import { systemCode, UsageError, UserError } from "../domain/errors.ts";
import { type Checked, checkAll, sendAll, type Sent } from "../send/batch.ts";
import { describeRefusal, type Refusal } from "../send/body.ts";
import { Input } from "../send/input.ts";
import { createJournal, renewJournal, type Journal, readJournal } from "../send/journal.ts";
import { Sender, type Target } from "../send/sender.ts";
import { count, plural, printJson, printNote } from "./print.ts";
import { startBar } from "./progress.ts";
import { onStopSignals } from "./stop-signal.ts";

/** Refusals, and duplicates that differ, shown on stderr. */
const SHOWN_MAX = 10;
/** Between two notes about retries, if there is no progress bar. */
const RETRY_NOTE_MS = 5_000;

export interface FileOptions {
  readonly connections: number;
  readonly journal?: string;
  readonly refused?: string;
  readonly json?: true;
}

/** `target`: null only validates. `resume`: the command that was typed. */
export async function sendFile(
  file: string,
  target: Target | null,
  options: FileOptions,
  resume: string,
): Promise<void> {
  const run = new Run(resume);
  const input = await run.orStopped(Input.open(file));
  const refusals = new Refusals(input, options.refused);
  const journal = target === null ? null : findJournal(input, options.journal);
  const checked = await run.orStopped(check(input, journal?.recorded ?? null, run, refusals));
  if (checked.invalid > 0 || target === null) return reportCheck(input, checked, refusals, options);
  const firstId = checked.withoutId === 0 ? "" : firstIdFor(input, checked, journal);
  const startedAt = performance.now();
  const differing = new Differing();
  const sending = { checked, firstId, target, run, refusals, differing, options };
  const sent = await send(input, sending);
  const duration_ms = Math.round(performance.now() - startedAt);
  report(input, { checked, sent, refusals, differing, run, duration_ms, json: options.json });
}

/** A run that SIGINT and SIGTERM stop. */
class Run {
  readonly stop = new AbortController();
  /** What to type to continue. */
  readonly resume: string;
  /** Called first when the run is stopped. */
  onStop: () => void = () => {};
  readonly #stopped: Promise<never>;

  constructor(resume: string) {
    this.resume = resume;
    const { promise, reject } = Promise.withResolvers<never>();
    this.#stopped = promise;
    onStopSignals(
      () => {
        this.onStop();
        this.stop.abort();
        reject(new UserError("Stopped: nothing was sent."));
      },
      () => {
        printNote(`Stopped at once. To resume, type: ${this.resume}`);
        process.exit(1);
      },
    );
  }

  /** Before anything is sent, the first signal ends the command. */
  orStopped<T>(work: Promise<T>): Promise<T> {
    return Promise.race([work, this.#stopped]);
  }
}

/** The refused signals: the first few are shown, all are written to the file of `--refused`. */
class Refusals {
  readonly #first: Refusal[] = [];
  readonly #file: string | undefined;
  readonly #descriptor: number | null;
  #count = 0;

  constructor(input: Input, file: string | undefined) {
    this.#file = file;
    this.#descriptor = file === undefined ? null : this.#open(input, file);
  }

  #open(input: Input, file: string): number {
    if (input.isSame(file)) {
      throw new UsageError(`${file} is the input: name another file with --refused FILE.`);
    }
    try {
      return openSync(file, "w", 0o600);
    } catch (error) {
      throw this.#unwritable(error);
    }
  }

  add(refusal: Refusal): void {
    this.#count += 1;
    if (this.#count <= SHOWN_MAX) this.#first.push(refusal);
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
    for (const refusal of this.#first) {
      const reason = describeRefusal(refusal).replace(/^The body /, "The line ");
      printNote(`line ${refusal.line}: ${reason}`);
    }
    const more = this.#count - this.#first.length;
    if (this.#count > 0 && this.#file !== undefined) printNote(`All are in ${this.#file}.`);
    else if (more > 0) printNote(`and ${count(more)} more: list all with --refused FILE`);
  }
}

/** Duplicates whose content differs from the stored signal's. */
class Differing {
  readonly #first: string[] = [];
  count = 0;

  add(line: number, fields: string): void {
    this.count += 1;
    if (this.count <= SHOWN_MAX) this.#first.push(`line ${line}: ${fields}`);
  }

  print(): void {
    if (this.count === 0) return;
    const more = this.count - this.#first.length;
    const lines = more > 0 ? [...this.#first, `and ${count(more)} more`] : this.#first;
    const verb = this.count === 1 ? "differs" : "differ";
    printNote(
      `${plural(this.count, "duplicate")} ${verb} from the stored signal (${lines.join("; ")}).`,
    );
  }
}

async function check(
  input: Input,
  recorded: Journal | null,
  run: Run,
  refusals: Refusals,
): Promise<Checked> {
  const bar = await startBar("check {bar} {percentage}%", input.bytes, {});
  run.onStop = () => bar?.stop();
  try {
    return await checkAll(input, {
      prefixBytes: recorded?.bytes ?? 0,
      onProgress: (bytes) => bar?.update(bytes),
      onInvalid: (refusal) => refusals.add(refusal),
    });
  } finally {
    bar?.stop();
  }
}

function reportCheck(
  { name }: Input,
  { signals, invalid, withoutId, isNdjson }: Checked,
  refusals: Refusals,
  { json }: FileOptions,
): void {
  if (json) printJson({ signals, invalid, without_client_signal_id: withoutId });
  refusals.print();
  if (!isNdjson) {
    printNote(
      "One JSON object per line is expected. For an array: jq -c '.[]' FILE > signals.ndjson; for objects of several lines: jq -c . FILE > signals.ndjson",
    );
  }
  if (invalid > 0) {
    throw new UserError(
      `Nothing was sent, because ${name} has ${plural(invalid, "invalid signal")}: correct the lines above, then try again.`,
    );
  }
  const gets = withoutId === 1 ? "gets" : "get";
  const ids = withoutId === 0 ? "" : `; ${count(withoutId)} ${gets} a client_signal_id when sent`;
  printNote(`${name}: ${plural(signals, "signal")}, all valid${ids}.`);
}

interface JournalFile {
  readonly file: string;
  /** Null if the file does not exist yet. */
  readonly recorded: Journal | null;
}

/** Returns null if the input has no place for a journal and none is named. */
function findJournal(input: Input, named: string | undefined): JournalFile | null {
  if (named === undefined && !input.isFile) return null;
  const file = named ?? `${input.name}.journal`;
  if (input.isSame(file)) {
    throw new UsageError(`${file} is the input: name another file with --journal FILE.`);
  }
  return { file, recorded: readJournal(file) };
}

function firstIdFor({ name }: Input, checked: Checked, journal: JournalFile | null): string {
  if (journal === null) {
    throw new UserError(
      `Nothing was sent: ${plural(checked.withoutId, "signal")} in ${name} without client_signal_id. Name a file for their ids with --journal FILE, so that the run can be repeated if it is interrupted.`,
    );
  }
  const { file, recorded } = journal;
  if (recorded === null) return createJournal(file, checked);
  if (recorded.sha256 !== checked.prefixSha256) {
    throw new UserError(
      `${name} has changed since ${file} was made for it at ${recorded.created_at}, and not only by lines appended. To resume that run, restore the input; to send all of this as new signals, name another journal with --journal FILE.`,
    );
  }
  renewJournal(file, recorded, checked);
  return recorded.first_id;
}

interface Sending {
  readonly checked: Checked;
  readonly firstId: string;
  readonly target: Target;
  readonly run: Run;
  readonly refusals: Refusals;
  readonly differing: Differing;
  readonly options: FileOptions;
}

async function send(input: Input, sending: Sending): Promise<Sent> {
  const { checked, firstId, target, run, refusals, differing, options } = sending;
  const format = "send {bar} {percentage}% of {total} signals, {rate}/s {note}";
  const bar = await startBar(format, checked.signals, { rate: 0, note: "" });
  run.onStop = () => {
    bar?.stop();
    printNote("Stopping after the requests in flight: press Ctrl-C again to stop at once.");
  };
  const startedAt = performance.now();
  let notedAt = -Infinity;
  const onRetry = (reason: string): void => {
    const note = `Trying again: ${reason}`;
    bar?.update({ note });
    if (bar !== null || performance.now() - notedAt < RETRY_NOTE_MS) return;
    notedAt = performance.now();
    printNote(note);
  };
  let done = 0;
  const onOutcome = (): void => {
    done += 1;
    const seconds = (performance.now() - startedAt) / 1_000;
    bar?.update(done, { rate: Math.round(done / seconds), note: "" });
  };
  try {
    return await sendAll(input, {
      firstId,
      sender: new Sender(target, onRetry),
      connections: options.connections,
      stop: run.stop,
      onOutcome,
      onRefused: (refusal) => refusals.add(refusal),
      onDiffering: (line, fields) => differing.add(line, fields),
    });
  } finally {
    bar?.stop();
  }
}

interface Ending {
  readonly checked: Checked;
  readonly sent: Sent;
  readonly refusals: Refusals;
  readonly differing: Differing;
  readonly run: Run;
  readonly duration_ms: number;
  readonly json: true | undefined;
}

function report({ name }: Input, ending: Ending): void {
  const { checked, sent, refusals, differing, run, duration_ms, json } = ending;
  const { signals } = checked;
  const { stored, duplicates, refused, unknown, stoppedBy, lastFailure } = sent;
  const not_sent = signals - stored - duplicates - refused - unknown;
  if (json) {
    const duplicates_differing = differing.count;
    const counts = {
      signals,
      stored,
      duplicates,
      duplicates_differing,
      refused,
      unknown,
      not_sent,
    };
    printJson({ ...counts, duration_ms });
  }
  refusals.print();
  printNote(
    `${name}: ${count(stored)} stored, ${plural(duplicates, "duplicate")}, ${count(refused)} refused, ${count(unknown)} unknown, ${count(not_sent)} not sent, in ${ms(duration_ms)}.`,
  );
  differing.print();
  if (stored + duplicates === signals) return;
  const problems = [stoppedBy?.message ?? lastFailure ?? ""];
  if (refused > 0) {
    problems.push(
      `The server refused ${plural(refused, "signal")}: correct them in a new file, and send that.`,
    );
  }
  if (unknown + not_sent > 0) {
    problems.push(`Resume with the same ids, so that nothing is stored twice: ${run.resume}`);
  }
  throw new UserError(problems.filter((problem) => problem !== "").join(" "));
}

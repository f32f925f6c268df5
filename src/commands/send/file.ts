/** `signalbox send FILE`: checks all signals of a file, sends them and reports what became of them. */
import { UsageError, UserError } from "../../lib/errors.ts";
import { fieldNames, SignalBody } from "../../domain/signal/signal.ts";
import { type Checked, checkAll, sendAll } from "../../send/batch.ts";
import { Input } from "../../send/input.ts";
import { type Journal, readJournal, writeJournal } from "../../send/journal.ts";
import { Sender, type Target } from "../../send/sender.ts";
import { count, plural, printChanged, printJson, printNote } from "../../cli/print.ts";
import { startBar } from "../../cli/progress.ts";
import { startProgress } from "./progress.ts";
import { Refusals, Results } from "./report.ts";
import { onStopSignals } from "../../cli/stop-signal.ts";

const notTexts = fieldNames.filter((name) => SignalBody.properties[name].type !== "string");
const FROM_CSV = `python3 -c 'import csv, json; [print(json.dumps({k: json.loads(v) if k in ${JSON.stringify(notTexts)} else v for k, v in row.items() if v})) for row in csv.DictReader(open(0, encoding="utf-8-sig", newline=""))]' < FILE > signals.ndjson`;

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
  const run = startRun(resume);
  const input = await run.orStopped(Input.open(file));
  const refusals = new Refusals(input, options.refused);
  const journal = target === null ? null : findJournal(input, options.journal);
  const checked = await run.orStopped(check(input, journal?.recorded ?? null, run, refusals));
  if (checked.invalid > 0 || target === null) {
    return reportCheck(input, checked, refusals, options);
  }
  const firstId = checked.withoutId === 0 ? "" : firstIdFor(input, checked, journal);
  const startedAt = performance.now();
  const results = new Results(checked.signals, refusals);
  const stoppedBy = await send(input, { firstId, target, run, results, options });
  const duration_ms = Math.round(performance.now() - startedAt);
  if (options.json) printChanged({ ...results.counts, duration_ms });
  results.print(input.name, duration_ms);
  if (!results.isComplete) throw new UserError(results.describeProblems(stoppedBy, resume));
}

type Run = ReturnType<typeof startRun>;

/** A run that SIGINT and SIGTERM stop. `resume`: what to type to continue. */
function startRun(resume: string) {
  const stop = new AbortController();
  const { promise: stopped, reject } = Promise.withResolvers<never>();
  const run = {
    stop,
    /** Called first when the run is stopped. */
    onStop: (): void => {},
    /** Before anything is sent, the first signal ends the command. */
    orStopped: <T>(work: Promise<T>): Promise<T> => Promise.race([work, stopped]),
  };
  onStopSignals(
    () => {
      run.onStop();
      stop.abort();
      reject(new UserError("Stopped: nothing was sent."));
    },
    () => {
      printNote(`Stopped at once. To resume, type: ${resume}`);
      process.exit(1);
    },
  );
  return run;
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
  { signals, invalid, withoutId, format }: Checked,
  refusals: Refusals,
  { json }: FileOptions,
): void {
  if (json) printJson({ signals, invalid, without_client_signal_id: withoutId });
  if (format === "other") {
    throw new UserError(
      `Nothing was sent, because ${name} is not NDJSON, which has one JSON object per line. For CSV with the names of the fields in its first line: ${FROM_CSV}`,
    );
  }
  refusals.print();
  if (format === "JSON") {
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

type JournalFile = ReturnType<typeof findJournal>;

/** Returns null if the input has no place for a journal and none is named. `recorded`: null before the first run. */
function findJournal(input: Input, named: string | undefined) {
  if (named === undefined && !input.isFile) return null;
  const file = named ?? `${input.name}.journal`;
  if (input.isSame(file)) {
    throw new UsageError(`${file} is the input: name another file with --journal FILE.`);
  }
  return { file, recorded: readJournal(file) };
}

function firstIdFor({ name }: Input, checked: Checked, journal: JournalFile): string {
  if (journal === null) {
    throw new UserError(
      `Nothing was sent: ${plural(checked.withoutId, "signal")} in ${name} without client_signal_id. Name a file for their ids with --journal FILE, so that the run can be repeated if it is interrupted.`,
    );
  }
  const { file, recorded } = journal;
  if (recorded !== null && recorded.sha256 !== checked.prefixSha256) {
    throw new UserError(
      `${name} has changed since ${file} was made for it at ${recorded.created_at}, and not only by lines appended. To resume that run, restore the input; to send all of this as new signals, name another journal with --journal FILE.`,
    );
  }
  return writeJournal(file, recorded, checked);
}

interface Sending {
  readonly firstId: string;
  readonly target: Target;
  readonly run: Run;
  readonly results: Results;
  readonly options: FileOptions;
}

/** Returns why sending stopped before the end, or null. */
async function send(
  input: Input,
  { firstId, target, run, results, options }: Sending,
): Promise<UserError | null> {
  const progress = await startProgress(target.url, results.counts.signals);
  run.onStop = () => {
    progress.stop();
    printNote("Stopping after the requests in flight: press Ctrl-C again to stop at once.");
  };
  try {
    const sender = new Sender(target, run.stop.signal, progress.retry);
    return await sendAll(input, {
      firstId,
      sender,
      connections: options.connections,
      stop: run.stop,
      onOutcome: (line, outcome) => {
        results.add(line, outcome);
        progress.add();
      },
    });
  } finally {
    progress.stop();
  }
}

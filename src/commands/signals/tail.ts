/** `signalbox signals tail`: the latest signals in the order of storage, and those that follow. */
import { setImmediate, setTimeout } from "node:timers/promises";
import { InvalidArgumentError, Option } from "commander";
import { UserError } from "../../lib/errors.ts";
import { isUlid } from "../../domain/signal/id.ts";
import { isStored, newestSignalId, readChunks, upTo } from "../../domain/signal/chunks.ts";
import type { SignalReader } from "../../domain/storage/signals.ts";
import type { Storage } from "../../domain/storage/storage.ts";
import { isStdoutClosed, OutputError } from "../../lib/output.ts";
import { withStorage } from "../../store/open.ts";
import { defineCommand } from "../../cli/define.ts";
import { limitOption, readCount } from "../../cli/options.ts";
import { printNote } from "../../cli/print.ts";
import { type Choice, filterOptions, type FilterOptions, TIMES_NOTE, toChoice } from "./options.ts";
import { CHUNK, ndjsonPrinter, tablePrinter } from "./output.ts";
import { stopAtSignals } from "../../cli/stop-signal.ts";

/** How often to look for new signals. */
const POLL_MS = 500;
/** How long a database may be missing or locked meanwhile, as during a restore. */
const WAIT_MS_MAX = 60_000;

interface TailOptions extends FilterOptions {
  readonly limit: number;
  readonly after?: string;
  readonly follow?: true;
}

export const tailCommand = defineCommand({
  name: "tail",
  description: "print the latest signals in the order of storage, and follow",
  options: [
    ...filterOptions(),
    limitOption("how many of the latest signals to begin with", 10, readCount),
    new Option("--after <id>", "begin with the first signal after the one with this id")
      .argParser(readSignalId)
      .conflicts("limit"),
    new Option("-f, --follow", "wait for more signals, until Ctrl-C").conflicts("until"),
    new Option("--json", "print NDJSON (the default unless stdout is a terminal)"),
  ],
  adds: "data",
  notes: `${TIMES_NOTE}

Prints a table on a terminal, and otherwise NDJSON: one JSON object per line. --follow continues after a
restart or a restore. To continue after tail itself ended, pass the last id that you have to --after;
nothing is skipped or repeated. That works even if a restore removed that signal. Signals that bots send
again after a restore get new ids, and keep their client_signal_id.`,
  examples: [
    "signalbox signals tail",
    "signalbox signals tail --follow --desk alpha",
    "signalbox signals tail --follow --after 01K5QZ8F3V9X2M7T4B6N1C0D8E >> signals.ndjson",
  ],
  run: tail,
});

function readSignalId(text: string): string {
  const id = text.toUpperCase();
  if (isUlid(id)) return id;
  throw new InvalidArgumentError(
    "Write a signal's id, such as 01K5QZ8F3V9X2M7T4B6N1C0D8E, from: signalbox signals list",
  );
}

async function tail(options: TailOptions): Promise<void> {
  const isTable = process.stdout.isTTY && !options.json;
  const print = isTable ? tablePrinter(options.desk !== undefined) : ndjsonPrinter;
  const stop = options.follow === true ? stopAtSignals() : new AbortController().signal;
  let last: string | null = null;
  const printNew = async ({ registry, signals }: Storage): Promise<void> => {
    const choice = await toChoice(registry, options);
    last ??= await findStart(signals, choice, options);
    const newest = await newestSignalId(signals, choice.deskId);
    if (newest > last) {
      const range = { after: last, before: upTo(newest) };
      const query = { ...choice, ...range, order: "oldest", limit: Infinity } as const;
      for await (const chunk of readChunks(signals, query, CHUNK)) {
        print(chunk);
        last = chunk.at(-1)?.id ?? last;
        // Lets the signal handlers run.
        await setImmediate();
        if (stop.aborted) return;
      }
    }
    // Lower than before if a restore has brought back an older database: what is new there is still printed.
    last = newest;
  };
  await withStorage(options.data, printNew);
  if (options.follow === true) await follow(() => withStorage(options.data, printNew), stop);
}

/** Opens the database again for each look: a restore may have put another in its place. */
async function follow(look: () => Promise<void>, stop: AbortSignal): Promise<void> {
  let failingSince: number | null = null;
  while (!stop.aborted && !isStdoutClosed()) {
    // Unlike a race of promises, leaves no listener behind.
    await setTimeout(POLL_MS, undefined, { signal: stop }).catch(() => {});
    try {
      if (!stop.aborted) await look();
      failingSince = null;
    } catch (error) {
      const isPassing = error instanceof UserError && !(error instanceof OutputError);
      failingSince ??= performance.now();
      if (!isPassing || performance.now() - failingSince > WAIT_MS_MAX) throw error;
    }
  }
}

/** The id of the signal before the first one to print. */
async function findStart(
  reader: SignalReader,
  choice: Choice,
  { after, limit }: TailOptions,
): Promise<string> {
  if (after !== undefined) {
    if (!(await isStored(reader, null, after))) {
      printNote(`No stored signal has the id ${after}: beginning with those that came after it.`);
    }
    return after;
  }
  // Read first, so that nothing is skipped that arrives during a search without a result.
  const newest = await newestSignalId(reader, null);
  const query = { ...choice, order: "newest", before: upTo(newest), limit } as const;
  let first: string | null = null;
  for await (const chunk of readChunks(reader, query, CHUNK)) first = chunk.at(-1)?.id ?? first;
  if (first === null) return newest;
  return newestSignalId(reader, null, first);
}

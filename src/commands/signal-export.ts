/** `signalbox signals export`: all signals that fit as a file, in constant memory. */
import {
  closeSync,
  existsSync,
  fstatSync,
  fsyncSync,
  openSync,
  renameSync,
  rmSync,
  writeSync,
} from "node:fs";
import { dirname, resolve } from "node:path";
import { setImmediate } from "node:timers/promises";
import { type Command, Option } from "commander";
import { UserError } from "../domain/errors.ts";
import { newestSignalId, readChunks, through } from "../domain/signal-chunks.ts";
import { type FileFormat, fileFormats, fileHeads, fileLines } from "../domain/signal-file.ts";
import type { SignalReader } from "../domain/storage.ts";
import type { SignalQuery } from "../domain/stored-signal.ts";
import { partialPath } from "../files.ts";
import { withStorage } from "../store/open.ts";
import { defineCommand } from "./define.ts";
import { requireFolder } from "./hint.ts";
import { printNote } from "./print.ts";
import { startBar } from "./progress.ts";
import { filterOptions, type FilterOptions, TIMES_NOTE, toChoice } from "./signal-options.ts";
import { CHUNK, writeLines } from "./signal-output.ts";
import { stopAtSignals } from "./stop-signal.ts";

const STDOUT = 1;
/** Steps of the progress bar. */
const STEPS = 1_000;

interface ExportOptions extends FilterOptions {
  readonly format: FileFormat;
  readonly output?: string;
}

export function exportCommand(): Command {
  return defineCommand({
    name: "export",
    description: "write all signals, oldest first, as NDJSON or CSV",
    options: [
      ...filterOptions(),
      new Option("--format <format>", "format of the file")
        .choices(fileFormats)
        .default("ndjson" satisfies FileFormat),
      new Option(
        "--output <file>",
        "a new file, which appears when it is complete (default: stdout)",
      ),
    ],
    adds: "data",
    notes: `${TIMES_NOTE}

Exports what is stored when it starts. In CSV, a text that a spreadsheet could take for a formula has a '
before it; NDJSON has every text as it was sent.`,
    examples: [
      "signalbox signals export --output signals.ndjson",
      "signalbox signals export --format csv --desk alpha --since 2026-11-01 --output november.csv",
      "signalbox signals export --symbol BTC/USDT | gzip > btc.ndjson.gz",
    ],
    run: async (options: ExportOptions) => {
      const stop = stopAtSignals();
      const target =
        options.output === undefined ? stdoutTarget() : fileTarget(resolve(options.output));
      try {
        const count = await withStorage(options.data, async ({ registry, signals }) => {
          const choice = await toChoice(registry, options);
          const before = through(await newestSignalId(signals, choice.deskId));
          const query = { ...choice, before, order: "oldest", limit: Infinity } as const;
          return exportTo(target, options.format, signals, query, stop);
        });
        target.finish();
        if (target.file !== null)
          printNote(`${target.file}: ${count} ${count === 1 ? "signal" : "signals"}.`);
      } catch (error) {
        target.discard();
        throw error;
      }
    },
  });
}

/** Returns the number of signals. */
async function exportTo(
  target: Target,
  format: FileFormat,
  reader: SignalReader,
  query: SignalQuery,
  stop: AbortSignal,
): Promise<number> {
  const bar = target.isFile
    ? await startBar("export {bar} {percentage}%, {count} signals", STEPS, { count: 0 })
    : null;
  const line = fileLines[format];
  let count = 0;
  try {
    target.write(fileHeads[format]);
    for await (const chunk of readChunks(reader, query, CHUNK)) {
      target.write(chunk.map(line).join(""));
      count += chunk.length;
      const last = chunk.at(-1)?.id;
      if (bar !== null && last !== undefined) {
        bar.update(Math.floor((await reader.progress(query, last)) * STEPS), { count });
      }
      // Lets the signal handlers and the bar's timer run.
      await setImmediate();
      if (stop.aborted) throw new UserError(`The export was stopped: ${target.leftBehind}.`);
    }
    return count;
  } finally {
    bar?.stop();
  }
}

interface Target {
  /** Null for stdout. */
  readonly file: string | null;
  /** Not a terminal or a pipe, whose reader may use the terminal. */
  readonly isFile: boolean;
  /** The state of the output after an export that was stopped, for the error. */
  readonly leftBehind: string;
  readonly write: (text: string) => void;
  readonly finish: () => void;
  readonly discard: () => void;
}

function stdoutTarget(): Target {
  return {
    file: null,
    isFile: fstatSync(STDOUT).isFile(),
    leftBehind: "the output is incomplete",
    write: writeLines,
    finish: () => {},
    discard: () => {},
  };
}

/** Writes under another name until the file is complete and on disk. */
function fileTarget(file: string): Target {
  const folder = dirname(file);
  requireFolder(folder);
  refuseExisting(file);
  const partial = partialPath(file, process.pid);
  const descriptor = openSync(partial, "w", 0o600);
  return {
    file,
    isFile: true,
    leftBehind: `${file} was not written`,
    write: (text) => {
      for (let bytes = Buffer.from(text); bytes.length > 0;) {
        bytes = bytes.subarray(writeSync(descriptor, bytes));
      }
    },
    finish: () => {
      fsyncSync(descriptor);
      closeSync(descriptor);
      refuseExisting(file);
      renameSync(partial, file);
    },
    discard: () => rmSync(partial, { force: true }),
  };
}

/** It may be anything, the database too. */
function refuseExisting(file: string): void {
  if (!existsSync(file)) return;
  throw new UserError(
    `${file} exists already, and was left as it is: name a new file with --output FILE.`,
  );
}

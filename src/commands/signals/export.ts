/** `signalbox signals export`: all signals that fit as a file, in constant memory. */
import {
  closeSync,
  existsSync,
  fstatSync,
  fsyncSync,
  openSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { dirname, resolve } from "node:path";
import { setImmediate } from "node:timers/promises";
import { Option } from "commander";
import { UserError } from "../../lib/errors.ts";
import { newestSignalId, readChunks, upTo } from "../../domain/signal/chunks.ts";
import { type FileFormat, fileFormats, fileHeads, fileLines } from "../../domain/signal/file.ts";
import type { SignalReader } from "../../domain/storage/signals.ts";
import type { SignalQuery } from "../../domain/signal/stored-signal.ts";
import { partialPath } from "../../lib/files.ts";
import { OutputError } from "../../lib/output.ts";
import { withStorage } from "../../store/open.ts";
import { defineCommand } from "../../cli/define.ts";
import { requireFolder } from "../../cli/hint.ts";
import { plural, printNote } from "../../cli/print.ts";
import { startBar } from "../../cli/progress.ts";
import { filterOptions, type FilterOptions, TIMES_NOTE, toChoice } from "./options.ts";
import { CHUNK, writeLines } from "./output.ts";
import { stopAtSignals } from "../../cli/stop-signal.ts";

const STDOUT = 1;
/** Steps of the progress bar. */
const STEPS = 1_000;

interface ExportOptions extends FilterOptions {
  readonly format: FileFormat;
  readonly output?: string;
}

export const exportCommand = defineCommand({
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
    const output = options.output === undefined ? null : new NewFile(resolve(options.output));
    try {
      const written = await withStorage(options.data, async ({ registry, signals }) => {
        const choice = await toChoice(registry, options);
        const before = upTo(await newestSignalId(signals, choice.deskId));
        const query = { ...choice, before, order: "oldest", limit: Infinity } as const;
        return exportTo(output, options.format, signals, query, stop);
      });
      output?.finish();
      if (output !== null) printNote(`${output.path}: ${plural(written, "signal")}.`);
    } catch (error) {
      output?.discard();
      throw error instanceof OutputError ? incomplete(error) : error;
    }
  },
});

/** Also if the reader has gone: what it has looks like a whole export. */
function incomplete({ code }: OutputError): UserError {
  const why = code === "EPIPE" ? "the program that reads it has ended" : code;
  return new UserError(
    `The export is incomplete, because its output could not be written (${why}): run it again, or write a file that appears only when it is complete, with --output FILE.`,
  );
}

/** `output`: null for stdout. Returns the number of signals. */
async function exportTo(
  output: NewFile | null,
  format: FileFormat,
  reader: SignalReader,
  query: SignalQuery,
  stop: AbortSignal,
): Promise<number> {
  const write = (text: string): void => (output === null ? writeLines(text) : output.write(text));
  // The reader of a pipe may use the terminal.
  const bar =
    output !== null || fstatSync(STDOUT).isFile()
      ? await startBar("export {bar} {percentage}%, {count} signals", STEPS, { count: 0 })
      : null;
  const line = fileLines[format];
  let count = 0;
  try {
    write(fileHeads[format]);
    for await (const chunk of readChunks(reader, query, CHUNK)) {
      write(chunk.map(line).join(""));
      count += chunk.length;
      const last = chunk.at(-1)?.id;
      if (bar !== null && last !== undefined) {
        bar.update(Math.floor((await reader.progress(query, last)) * STEPS), { count });
      }
      // Lets the signal handlers and the bar's timer run.
      await setImmediate();
      if (!stop.aborted) continue;
      const left = output === null ? "the output is incomplete" : `${output.path} was not written`;
      throw new UserError(`The export was stopped: ${left}.`);
    }
    return count;
  } finally {
    bar?.stop();
  }
}

/** Has another name until it is complete and on disk. */
class NewFile {
  readonly path: string;
  readonly #partial: string;
  readonly #descriptor: number;

  constructor(path: string) {
    requireFolder(dirname(path));
    refuseExisting(path);
    this.path = path;
    this.#partial = partialPath(path);
    this.#descriptor = openSync(this.#partial, "wx", 0o600);
  }

  write(text: string): void {
    writeFileSync(this.#descriptor, text);
  }

  finish(): void {
    fsyncSync(this.#descriptor);
    closeSync(this.#descriptor);
    refuseExisting(this.path);
    renameSync(this.#partial, this.path);
  }

  discard(): void {
    rmSync(this.#partial, { force: true });
  }
}

/** It may be anything, the database too. */
function refuseExisting(file: string): void {
  if (!existsSync(file)) return;
  throw new UserError(
    `${file} exists already, and was left as it is: name a new file with --output FILE.`,
  );
}

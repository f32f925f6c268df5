/** `signalbox send`: sends the signals of a file, or one signal, to a server. */
import { readFileSync } from "node:fs";
import { Argument, InvalidArgumentError, Option } from "commander";
import { systemCode, UsageError, UserError } from "../../lib/errors.ts";
import { isWellFormedKey, keyPrefixes } from "../../domain/key/key.ts";
import { shellQuoted } from "../../lib/text/shell.ts";
import { readTrusted } from "../../http/tls.ts";
import { askStatus } from "../../ops/client.ts";
import { STDIN } from "../../send/input.ts";
import type { Target } from "../../send/sender.ts";
import { defineCommand } from "../../cli/define.ts";
import { readOwnUrl, readPositive, spanOption } from "../../cli/options.ts";
import { type FileOptions, sendFile } from "./file.ts";
import { fieldOptions, flagOf, sendOne, typedFields } from "./one.ts";

const URL_DEFAULT = "http://127.0.0.1:8080";
const CONNECTIONS_DEFAULT = 16;
/** As many as Bun's `fetch` opens. */
const CONNECTIONS_MAX = 256;

interface SendOptions extends FileOptions {
  readonly data: string;
  readonly url?: string;
  readonly keyFile?: string;
  readonly ca?: string;
  readonly timeout: number;
  readonly giveUpAfter: number;
  readonly dryRun?: true;
}

export const sendCommand = defineCommand({
  name: "send",
  description: "send the signals of a file, or one signal, to a server",
  arguments: [new Argument("[file]", "one JSON object per line; - for stdin")],
  options: [
    new Option(
      "--url <url>",
      `the server's address (default: that of the server that uses the data folder, or ${URL_DEFAULT})`,
    )
      .env("SIGNALBOX_URL")
      .argParser((text) => readOwnUrl(text).replace(/\/v1\/signals$/, "")),
    new Option("--key-file <file>", "file with the API key (default: the variable SIGNALBOX_KEY)"),
    new Option("--ca <file>", "PEM certificate to trust, for a server with a private one"),
    new Option("--connections <n>", "how many signals to send at the same time")
      .argParser(readConnections)
      .default(CONNECTIONS_DEFAULT),
    spanOption("--timeout <span>", "how long to wait for an answer before another attempt", "10s"),
    spanOption("--give-up-after <span>", "how long to try to send one signal", "5m"),
    new Option(
      "--journal <file>",
      "file that keeps the ids given to signals without one (default: FILE.journal)",
    ),
    new Option("--refused <file>", "write the refused signals and the reasons to this file"),
    new Option("--dry-run", "validate only, send nothing"),
    new Option("--json", "print the summary as JSON"),
    ...fieldOptions(),
  ],
  notes: `
Everything is validated by the server's own rules before anything is sent, stdin too: it is copied to a
temporary file first. One invalid line, and nothing is sent.

A signal without client_signal_id gets a UUID v7. The journal is on disk before the first attempt. After
Ctrl-C, a crash or a power failure, run the same command on the same input: each signal gets the same
id again, so one that is already stored counts as a duplicate. Lines may be appended meanwhile. For stdin,
name the journal.

Time-outs, broken connections, 429 and 5xx are tried again, with growing pauses. A wrong key or certificate
stops everything. Ctrl-C finishes the requests in flight; a second one ends at once.

The exit code is 0 only if every signal is stored or a duplicate.`,
  examples: [
    "signalbox send --key-file key.txt signals.ndjson",
    "signalbox send --url https://signals.example.com --key-file key.txt --refused refused.ndjson signals.ndjson",
    "zcat signals.ndjson.gz | signalbox send --journal signals.journal -",
    "signalbox send --dry-run signals.ndjson",
    "signalbox send --source venue_2 --type crypto --symbol BTC/USDT --side open --price 64250.5",
  ],
  adds: "folder",
  run: async (options: SendOptions, file: string | undefined) => {
    const typed = typedFields(options);
    const [field] = typed.keys();
    if (file !== undefined && field !== undefined) {
      throw new UsageError(`${flagOf(field)} is for one signal: give it, or a file, but not both.`);
    }
    const readTarget = async () => (options.dryRun ? null : await targetOf(options));
    if (field !== undefined) return sendOne(typed, readTarget);
    if (file !== undefined) {
      const target = await readTarget();
      return sendFile(file, target, options, resumeCommand(file, target?.url));
    }
    throw new UsageError(
      "Name a file with signals, or - for stdin, or give one signal: signalbox send --source venue_2 --type crypto --symbol BTC/USDT --side open",
    );
  },
});

function readConnections(text: string): number {
  const connections = readPositive(text);
  if (connections <= CONNECTIONS_MAX) return connections;
  throw new InvalidArgumentError(`This is too large: write at most ${CONNECTIONS_MAX}.`);
}

/** The command that was typed, with the address if that came from elsewhere. */
function resumeCommand(file: string, url = URL_DEFAULT): string {
  const typed = process.argv.slice(2);
  const isAddressed = url === URL_DEFAULT || typed.some((word) => /^--url(=|$)/.test(word));
  if (!isAddressed) typed.splice(1, 0, "--url", url);
  const input = file === STDIN ? " (with the same input)" : "";
  return `signalbox ${typed.map(shellQuoted).join(" ")}${input}`;
}

async function targetOf(options: SendOptions): Promise<Target> {
  const key = readKey(options.keyFile);
  return {
    url: options.url ?? (await askStatus(options.data))?.public_url ?? URL_DEFAULT,
    key,
    ca: options.ca === undefined ? null : readTrusted(options.ca, "--ca"),
    timeoutMs: options.timeout,
    giveUpAfterMs: options.giveUpAfter,
  };
}

function readKey(file: string | undefined): string {
  const key = (file === undefined ? (process.env["SIGNALBOX_KEY"] ?? "") : readText(file)).trim();
  if (isWellFormedKey(key, "send")) return key;
  if (file === undefined && key === "") {
    throw new UsageError(
      "The API key is missing: name the file that contains it with --key-file FILE, or type: stty -echo; read -r SIGNALBOX_KEY; stty echo; export SIGNALBOX_KEY",
    );
  }
  const Refusal = file === undefined ? UsageError : UserError;
  if (isWellFormedKey(key, "read")) {
    throw new Refusal(
      `${file ?? "SIGNALBOX_KEY"} contains a read key, which sends nothing: mint one that sends with: signalbox key mint --desk NAME`,
    );
  }
  throw new Refusal(
    `${file ?? "SIGNALBOX_KEY"} does not contain an API key, which is ${keyPrefixes.send} and 64 hexadecimal digits: mint one with: signalbox key mint --desk NAME`,
  );
}

function readText(file: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch (error) {
    throw new UserError(
      `${file} cannot be read (${systemCode(error)}): name a file that this user may read.`,
    );
  }
}

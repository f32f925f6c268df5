/** What several commands share: options, and readers of their values. */
import { statSync } from "node:fs";
import { Argument, InvalidArgumentError, Option } from "commander";
import ms from "ms";
import { checkDeskName } from "../domain/desk/desk.ts";
import { UserError } from "../lib/errors.ts";
import { backupScript } from "../backups/script.ts";
import { type Address, hostOf, isLoopbackHost, parseAddress } from "../http/address.ts";

/** Whose names complete an argument or option in a shell. */
export const completedBy = new WeakMap<Argument | Option, "desk" | "key">();

export function namedBy<Value extends Argument | Option>(by: "desk" | "key", value: Value): Value {
  completedBy.set(value, by);
  return value;
}

/** A desk that exists. */
export function deskArgument(name = "<desk>"): Argument {
  return namedBy("desk", deskNameArgument(name, "the desk's name"));
}

export function deskNameArgument(
  name: string,
  description = "lower-case letters, digits, dots, dashes and underscores",
): Argument {
  return new Argument(name, description).argParser(checkedBy(checkDeskName));
}

export function deskOption(description: string): Option {
  const option = new Option("--desk <name>", description).argParser(checkedBy(checkDeskName));
  return namedBy("desk", option);
}

export function jsonOption(): Option {
  return new Option("--json", "print JSON");
}

export function limitOption(description: string, fallback: number, read = readPositive): Option {
  return new Option("--limit <n>", description).argParser(read).default(fallback);
}

export function spanOption(
  flags: string,
  description: string,
  fallback: ms.StringValue,
  read = readInterval,
): Option {
  return new Option(flags, description).argParser(read).default(ms(fallback), fallback);
}

/** Throws `UserError` unless the backup is a file. `ifFolder`: what to do if it is a folder. */
export function requireFile(file: string, ifFolder: string): void {
  const stats = statSync(file, { throwIfNoEntry: false });
  if (stats?.isFile() === true) return;
  if (stats?.isDirectory() === true) throw new UserError(`${file} is a folder: ${ifFolder}`);
  if (stats !== undefined) {
    throw new UserError(
      `${file} is not a regular file: name a backup, such as /backup/signalbox.db`,
    );
  }
  throw new UserError(`There is no file ${file}: name a backup, such as /backup/signalbox.db`);
}

const SPAN_MAX = "100y";
/** No timer runs for longer than 2^31 milliseconds. */
const WAIT_MAX = "24d";

/** Reads a span such as `90d` or `10s`, as milliseconds. */
export function readDuration(text: string): number {
  return readSpan(text, SPAN_MAX);
}

/** Reads how long to wait, as milliseconds. */
export function readWait(text: string): number {
  return readSpan(text, WAIT_MAX);
}

function readSpan(text: string, max: ms.StringValue): number {
  const [, unit] = /^\d+(?:\.\d+)?(ms|s|m|h|d|w|y)?$/.exec(text) ?? [text, null];
  if (unit === null) {
    throw new InvalidArgumentError(
      "Write a number and a unit (ms, s, m, h, d, w, y), such as 90d.",
    );
  }
  if (unit === undefined) {
    throw new InvalidArgumentError(
      `The unit is missing: write ${text}s for seconds, or use m, h, d, w or y, such as 90d.`,
    );
  }
  const milliseconds = Math.round(ms(text as ms.StringValue));
  if (milliseconds <= ms(max)) return milliseconds;
  throw new InvalidArgumentError(`This is too long: write at most ${max}.`);
}

/** Reads how long to wait, at least a second, as milliseconds. */
export function readInterval(text: string): number {
  return atLeastOneSecond(readWait(text), "such as 1h");
}

/** Reads an interval that may be longer than any timer, as milliseconds. */
export function readSchedule(text: string): number {
  return atLeastOneSecond(readDuration(text), "such as 1w");
}

/** Reads a shell command for backups, as `backupScript` returns it. */
export const readCommand = checkedBy(backupScript);

/** Milliseconds. (Not null: commander replaces null by an empty text.) */
export type Lifetime = number | "never";

export function readLifetime(text: string): Lifetime {
  if (text === "never") return text;
  return atLeastOneSecond(readDuration(text), "such as 90d, or never");
}

function atLeastOneSecond(milliseconds: number, example: string): number {
  if (milliseconds >= 1_000) return milliseconds;
  throw new InvalidArgumentError(`Write one second or more, ${example}.`);
}

export function readAddress(text: string): Address {
  return orInvalid(() => parseAddress(text));
}

/** Reads a whole number from 0. */
export function readCount(text: string): number {
  return readWhole(text, 0);
}

export function readPositive(text: string): number {
  return readWhole(text, 1);
}

const WHOLE_MAX = 999_999_999;

function readWhole(text: string, min: number): number {
  if (!/^\d+$/.test(text) || Number(text) < min) {
    throw new InvalidArgumentError(`Write a whole number, ${min} or more.`);
  }
  if (Number(text) <= WHOLE_MAX) return Number(text);
  throw new InvalidArgumentError(`This is too large: write at most ${WHOLE_MAX}.`);
}

/** Reads an http or https URL, without a trailing slash. `local`: an example on this machine. */
export function readUrl(text: string, local: string): string {
  const url = URL.canParse(text) ? new URL(text) : null;
  const isPlain = url !== null && url.search === "" && url.hash === "" && url.username === "";
  if (!isPlain || !/^https?:$/.test(url.protocol)) {
    throw new InvalidArgumentError(`Write it like https://signals.example.com or ${local}.`);
  }
  return url.href.replace(/\/+$/, "");
}

/** Reads a public URL of ours: https, because it carries keys and passwords, or http on loopback. */
export function readOwnUrl(text: string): string {
  const url = readUrl(text, "http://127.0.0.1:8080");
  if (url.startsWith("https:") || isLoopbackHost(hostOf(url))) return url;
  throw new InvalidArgumentError(
    `Keys and passwords must not cross the network unencrypted. Write ${url.replace(/^http:/, "https:")}; plain http is only for localhost, 127.0.0.1 and [::1].`,
  );
}

export function readDirectoryUrl(text: string): string {
  const url = URL.canParse(text) ? new URL(text) : null;
  if (url?.protocol === "https:" && url.username === "" && url.hash === "") return url.href;
  throw new InvalidArgumentError(
    "A directory is asked over https only. Write it like https://ca.example.com/acme/directory.",
  );
}

export function readEmail(text: string): string {
  if (/^[^\s@,?&]+@[^\s@,?&]+$/.test(text)) return text;
  throw new InvalidArgumentError("Write one address, such as ops@example.com.");
}

/** Makes a reader from a check that throws `UserError`. */
export function checkedBy<T>(check: (text: string) => T): (text: string) => T {
  return (text) => orInvalid(() => check(text));
}

/** Reports a `UserError` about a value as a usage error: exit code 2. */
export function orInvalid<T>(read: () => T): T {
  try {
    return read();
  } catch (error) {
    throw error instanceof UserError ? new InvalidArgumentError(error.message) : error;
  }
}

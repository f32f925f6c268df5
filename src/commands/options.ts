/** Options and arguments that several commands share, and how their values are read. */
import { statSync } from "node:fs";
import { join, resolve } from "node:path";
import { InvalidArgumentError, Option } from "commander";
import ms from "ms";
import { defaults } from "../config.ts";
import { UserError } from "../domain/errors.ts";
import { type Address, isLoopbackHost, parseAddress } from "../net/address.ts";
import { explainFailure, isDamage, isTransient } from "../store/sqlite/failures.ts";
import { DATABASE_NAME } from "../store/sqlite/folder.ts";
import { openDatabase } from "../store/sqlite/open.ts";
import { SqliteRegistry } from "../store/sqlite/registry.ts";

export function dataOption(): Option {
  return new Option("--data <dir>", "the folder of the database")
    .env("SIGNALBOX_DATA")
    .default(defaults.data);
}

export function jsonOption(): Option {
  return new Option("--json", "print JSON");
}

/** The beginning of the links to the console. */
export function consoleUrlOption(): Option {
  return new Option(
    "--console-url <url>",
    "what browsers call the console (default: what the running server says)",
  )
    .env("SIGNALBOX_CONSOLE_URL")
    .argParser(readOwnUrl);
}

/** Opens the registry for one command and closes it after. */
export function withRegistry<T>(
  dataDir: string,
  work: (registry: SqliteRegistry) => T,
  options: { create?: true } = {},
): T {
  return withDatabase(dataDir, (db) => work(new SqliteRegistry(db)), options);
}

/** Opens the database for one command and closes it after. Creates none unless told to. */
export function withDatabase<T>(
  dataDir: string,
  work: (db: ReturnType<typeof openDatabase>) => T,
  { create = false }: { create?: boolean } = {},
): T {
  const db = openDatabase(resolve(dataDir), "command", { mustExist: !create });
  try {
    return work(db);
  } catch (error) {
    const isOfTheDisk = isTransient(error) || isDamage(error);
    throw isOfTheDisk ? explainFailure(error, join(resolve(dataDir), DATABASE_NAME)) : error;
  } finally {
    db.close();
  }
}

/** A backup that is named must be there. */
export function refuseMissing(file: string): void {
  if (statSync(file, { throwIfNoEntry: false })?.isFile() === true) return;
  throw new UserError(`There is no file ${file}: name a backup, such as /backup/signalbox.db`);
}

/** A span such as `90d`, `24h` or `10s`, in milliseconds. */
export function readDuration(text: string): number {
  if (/^\d+(\.\d+)?$/.test(text)) {
    throw new InvalidArgumentError(
      `The unit is missing: write ${text}s for seconds, or s, m, h, d, w, y as in 5m, such as 90d.`,
    );
  }
  if (!/^\d+(\.\d+)?(ms|s|m|h|d|w|y)$/.test(text)) {
    throw new InvalidArgumentError("Write a number and a unit (s, m, h, d, w, y), such as 90d.");
  }
  const milliseconds = ms(text as ms.StringValue);
  if (milliseconds <= ms("100y")) return milliseconds;
  throw new InvalidArgumentError("This is too long: write at most 100y, such as 90d.");
}

/** The interval between events. */
export function readInterval(text: string): number {
  const milliseconds = readDuration(text);
  if (milliseconds < 1_000) throw new InvalidArgumentError("Write one second or more, such as 1h.");
  return milliseconds;
}

/** How long a key works, in milliseconds. */
export type Lifetime = number | "never";

export function readLifetime(text: string): Lifetime {
  if (text === "never") return text;
  const milliseconds = readDuration(text);
  if (milliseconds >= 1_000) return milliseconds;
  throw new InvalidArgumentError("Write one second or more, such as 90d, or never.");
}

export function readAddress(text: string): Address {
  return orInvalid(() => parseAddress(text));
}

export function readCount(text: string): number {
  return readWhole(text, 0);
}

/** How many to keep or to show. */
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

/** An http or https address, without a slash at its end. */
export function readUrl(text: string): string {
  const url = URL.canParse(text) ? new URL(text) : null;
  const isPlain = url !== null && url.search === "" && url.hash === "" && url.username === "";
  if (!isPlain || !/^https?:$/.test(url.protocol)) {
    throw new InvalidArgumentError(
      "Write it like https://signals.example.com or http://127.0.0.1:9090.",
    );
  }
  return url.href.replace(/\/+$/, "");
}

/** What others call us. Keys and passwords would cross the network in the clear with plain `http:`. */
export function readOwnUrl(text: string): string {
  const url = readUrl(text);
  const { protocol, hostname } = new URL(url);
  if (protocol === "https:" || isLoopbackHost(hostname.replace(/^\[|\]$/g, ""))) return url;
  throw new InvalidArgumentError(
    `Keys and passwords must not cross the network in the clear. Write ${url.replace(/^http:/, "https:")}; plain http is for localhost, 127.0.0.1 and [::1] only.`,
  );
}

/** A value that is wrong in itself is a usage error: exit code 2. */
export function orInvalid<T>(read: () => T): T {
  try {
    return read();
  } catch (error) {
    throw error instanceof UserError ? new InvalidArgumentError(error.message) : error;
  }
}

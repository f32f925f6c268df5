/** A setting of `serve`: a flag, an environment variable, and a row of docs/configuration.md. */
import { type Command, InvalidArgumentError, Option } from "commander";
import { UsageError } from "../lib/errors.ts";

export interface Setting {
  /** A flag without a value is a switch. */
  readonly flags: string;
  /** What `--help` says, and with what `more` adds in Markdown, docs/configuration.md. */
  readonly text: string;
  readonly more?: string;
  readonly choices?: readonly string[];
  readonly read?: (text: string, before: never) => unknown;
  /** As it would be written; an empty list if the setting can be repeated. */
  readonly fallback?: string | number | readonly never[];
}

/** The environment's name follows from the flag: `--tls-cert` is `SIGNALBOX_TLS_CERT`. */
export function optionOf({ flags, text, choices, read, fallback }: Setting): Option {
  const option = new Option(flags, text);
  option.env(`SIGNALBOX_${option.name().toUpperCase().replaceAll("-", "_")}`);
  if (choices !== undefined) option.choices(choices);
  if (read !== undefined) option.argParser(read as (text: string, before: unknown) => unknown);
  if (fallback === undefined) return option;
  if (typeof fallback === "object") return option.default(fallback, "none");
  const written = String(fallback);
  return option.default(read?.(written, undefined as never) ?? written, written);
}

export const dataSetting = {
  flags: "--data <dir>",
  text: "data folder",
  more: ": the database; created with mode 0700, the files in it with 0600. Permissions that are too open are tightened, with a warning",
  fallback: "./data",
} as const satisfies Setting;

/** `defineCommand` reads it: commander would repeat a wrong value, with its password. */
export const storeSetting = {
  flags: "--store <url>",
  text: "PostgreSQL database to use instead of one in the data folder",
  more: ", such as `postgres://signalbox@db.example.com/signalbox`; set SIGNALBOX_STORE instead if the URL has a password. Several servers may use one database: see [scale](scale.md). The data folder is then this server's own: its socket and certificates",
} as const satisfies Setting;

export function dataOption(): Option {
  return optionOf(dataSetting);
}

export function storeOption(): Option {
  return optionOf(storeSetting);
}

/** Throws `UsageError` for settings that have no effect without another one. */
export function refuseIdle(names: readonly string[], serve: Command, missing: string): void {
  for (const name of names) {
    if (!isGiven(name, serve)) continue;
    const option = findOption(name, serve);
    throw new UsageError(`${option?.long} (${option?.envVar}) has no effect without ${missing}.`);
  }
}

/** As a flag, or in the environment. */
export function isGiven(name: string, command: Command): boolean {
  return (command.getOptionValueSource(name) ?? "default") !== "default";
}

export function findOption(name: string, command: Command): Option | undefined {
  return command.options.find((option) => option.attributeName() === name);
}

/** Reads values that are separated by commas, at least one. */
export function splitList(text: string): string[] {
  const parts = text.split(",").map((part) => part.trim());
  const values = parts.filter((part) => part !== "");
  if (values.length > 0) return values;
  throw new InvalidArgumentError("It is empty: write a value, or leave it out.");
}

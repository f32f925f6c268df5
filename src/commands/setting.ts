/** What the settings of `serve` are made of. */
import { type Command, Option } from "commander";
import { UsageError } from "../domain/errors.ts";

/** A flag with its environment variable: `--tls-cert` is `SIGNALBOX_TLS_CERT`. */
export function setting(
  flags: string,
  description: string,
  read?: (text: string, before: never) => unknown,
  fallback?: string | number,
): Option {
  const option = new Option(flags, description);
  option.env(`SIGNALBOX_${option.name().toUpperCase().replaceAll("-", "_")}`);
  if (read !== undefined) option.argParser(read as (text: string) => unknown);
  if (read === undefined || fallback === undefined) return option;
  return option.default((read as (text: string) => unknown)(String(fallback)), String(fallback));
}

/** Throws `UsageError` for settings that have no effect without another one. */
export function refuseIdle(names: readonly string[], serve: Command, missing: string): void {
  for (const name of names) {
    if ((serve.getOptionValueSource(name) ?? "default") === "default") continue;
    const option = findOption(name, serve);
    throw new UsageError(`${option?.long} (${option?.envVar}) has no effect without ${missing}.`);
  }
}

export function findOption(name: string, command: Command): Option | undefined {
  return command.options.find((option) => option.attributeName() === name);
}

export function splitList(text: string): string[] {
  return text
    .split(",")
    .map((part) => part.trim())
    .filter((part) => part !== "");
}

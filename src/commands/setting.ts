/** What the settings of `serve` are made of. */
import { type Command, InvalidArgumentError, Option } from "commander";
import { UsageError } from "../domain/errors.ts";

type Read = (text: string, before: unknown) => unknown;

/** A flag with its environment variable: `--tls-cert` is `SIGNALBOX_TLS_CERT`. An empty value is refused. */
export function setting(
  flags: string,
  description: string,
  read: (text: string, before: never) => unknown = (text) => text,
  fallback?: string | number,
): Option {
  const option = new Option(flags, description);
  option.env(`SIGNALBOX_${option.name().toUpperCase().replaceAll("-", "_")}`);
  if (option.required)
    option.argParser((text, before) => notEmpty(text, (read as Read)(text, before)));
  if (fallback === undefined) return option;
  return option.default((read as Read)(String(fallback), undefined), String(fallback));
}

/** After the reader, whose own refusal has an example. */
function notEmpty(text: string, value: unknown): unknown {
  if (!/^[\s,]*$/.test(text)) return value;
  throw new InvalidArgumentError("It is empty: write a value, or leave this setting out.");
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

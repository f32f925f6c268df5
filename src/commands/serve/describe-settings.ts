/** What `config` shows of each setting, and where its value is from. */
import type { Command } from "commander";
import { placeName } from "../../lib/place.ts";
import { readStoreUrl } from "../../lib/store-url.ts";
import { readSmtpUrl, shownSmtpUrl } from "../../notices/settings.ts";
import { ACME_LISTEN, isOn } from "./settings.ts";

interface DescribedSetting {
  readonly flag: string;
  readonly variable: string;
  /** As it was written; `on` or `off` for a switch; null: none. */
  readonly value: string | null;
  readonly source: "default" | "environment" | "flag";
}

/** `typed`: the values given as flags, by the option's name. */
export function describeSettings(
  command: Command,
  typed: ReadonlyMap<string, readonly string[]>,
): DescribedSetting[] {
  return command.options.flatMap((option): DescribedSetting[] => {
    const { long, envVar } = option;
    if (typeof long !== "string" || envVar === undefined) return [];
    const name = option.attributeName();
    const from = command.getOptionValueSource(name);
    const source = from === "cli" ? "flag" : from === "env" ? "environment" : "default";
    const fallback =
      long === "--listen" && (command.getOptionValue("acmeDomain") as readonly string[]).length > 0
        ? ACME_LISTEN
        : (option.defaultValueDescription ?? (option.defaultValue as string | undefined));
    const written = {
      default: fallback === "none" ? null : (fallback ?? null),
      environment: process.env[envVar] ?? "",
      flag: typed.get(name)?.join(",") ?? "",
    };
    const value = option.required ? written[source] : isOn(name, command) ? "on" : "off";
    const hide = source === "default" ? undefined : withoutPassword[name];
    const shown = hide === undefined ? value : hide(String(command.getOptionValue(name)));
    return [{ flag: long, variable: envVar, value: shown, source }];
  });
}

/** URLs that may have one, by the option's name. */
const withoutPassword: Readonly<Record<string, (url: string) => string>> = {
  store: (url) => placeName(readStoreUrl(url)),
  smtpUrl: (url) => shownSmtpUrl(readSmtpUrl(url)),
};

/** The options that limit a new key. */
import { Option } from "commander";
import {
  type AskedLimits,
  checkNetworks,
  checkRate,
  checkSource,
  checkType,
} from "../../domain/key/limits.ts";
import { orInvalid } from "../../cli/options.ts";
import { splitList } from "../../cli/setting.ts";

/** As commander reads them. */
export interface LimitOptions {
  readonly allowFrom?: readonly string[];
  readonly onlySource?: readonly string[];
  readonly onlyType?: readonly string[];
  readonly rateLimit?: number;
}

export function limitOptions(): Option[] {
  return [
    listOption(
      "--allow-from <network>",
      "an address or CIDR range that it works from; from elsewhere it is an unknown key",
      checkNetworks,
    ),
    listOption("--only-source <source>", "a source that it may send", (names) =>
      names.forEach(checkSource),
    ),
    listOption("--only-type <type>", "a type that it may send", (names) =>
      names.forEach(checkType),
    ),
    new Option("--rate-limit <n>", "requests per second; bursts of twice that").argParser(
      (text) => {
        const rate = /^\d+$/.test(text) ? Number(text) : Number.NaN;
        orInvalid(() => checkRate(rate));
        return rate;
      },
    ),
  ];
}

/** Repeatable, or separated by commas. */
function listOption(
  flags: string,
  text: string,
  check: (values: readonly string[]) => void,
): Option {
  return new Option(flags, `${text} (repeatable, or separated by commas)`).argParser(
    (written, before: readonly string[] | undefined) => {
      const values = [...(before ?? []), ...splitList(written)];
      orInvalid(() => check(values));
      return values;
    },
  );
}

export function askedLimits({
  allowFrom = [],
  onlySource = [],
  onlyType = [],
  rateLimit,
}: LimitOptions): AskedLimits {
  return { networks: allowFrom, sources: onlySource, types: onlyType, rate: rateLimit ?? null };
}

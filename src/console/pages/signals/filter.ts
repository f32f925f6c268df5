/** The filter of the signals page, in the address. */
import { linkTo } from "../../server/links.ts";
import { isUlid } from "../../../domain/signal/id.ts";
import { redactKeys } from "../../../domain/key/key.ts";
import { SYMBOL_CHARACTERS_MAX } from "../../../domain/signal/signal.ts";
import { choices, readMoment } from "../../../domain/signal/filter.ts";
import { everySignal, type SignalFilter } from "../../../domain/signal/stored-signal.ts";

/** The names of the form's fields, also in the address. */
const filterNames = [
  "symbol",
  "source",
  "type",
  "side",
  "direction",
  "key",
  "from",
  "to",
  "duplicates",
] as const;
export type FilterName = (typeof filterNames)[number];

/** The value of `duplicates`: only signals with duplicates that differ. */
export const DIFFERING = "differing";

/** More than any valid value has. */
const OTHER_CHARACTERS_MAX = 40;

export interface FilterInput {
  /** As typed, without keys; fields that are empty or too long are left out. */
  readonly typed: Readonly<Partial<Record<FilterName, string>>>;
  readonly filter: SignalFilter;
  /** Fields with an invalid value. */
  readonly problems: readonly FilterName[];
}

export function readFilter(parameters: URLSearchParams): FilterInput {
  const typed: Partial<Record<FilterName, string>> = {};
  const tooLong: FilterName[] = [];
  for (const name of filterNames) {
    const text = redactKeys(parameters.get(name) ?? "");
    if (Array.from(text).length > maxOf(name)) tooLong.push(name);
    else if (text !== "") typed[name] = text;
  }
  const from = readMoment(typed.from ?? "");
  const to = readMoment(typed.to ?? "");
  const problems = filterNames.filter((name) => {
    if (tooLong.includes(name)) return true;
    const text = typed[name];
    if (text === undefined || name === "symbol") return false;
    if (name === "key") return !isUlid(text);
    if (name === "duplicates") return text !== DIFFERING;
    if (name === "from") return from === null;
    if (name === "to") return to === null || (from !== null && from >= to);
    return !choices[name].includes(text);
  });
  const filter: SignalFilter = {
    ...everySignal,
    symbol: typed.symbol ?? null,
    source: typed.source ?? null,
    type: typed.type ?? null,
    side: typed.side ?? null,
    direction: typed.direction ?? null,
    key_id: typed.key ?? null,
    from,
    to,
  };
  return { typed, filter, problems };
}

function maxOf(name: FilterName): number {
  return name === "symbol" ? SYMBOL_CHARACTERS_MAX : OTHER_CHARACTERS_MAX;
}

const reasons: Readonly<Partial<Record<FilterName, string>>> = {
  symbol: `symbol has at most ${SYMBOL_CHARACTERS_MAX} characters`,
  to: "“Before” must be a time that is later than “From”",
};

/** Returns a sentence without its full stop. */
export function describeProblems(problems: readonly FilterName[]): string {
  return problems.map((name) => reasons[name] ?? `${name} cannot be understood`).join("; ");
}

/** Returns a path of the console with the filter and more parameters. */
export function pathWith(
  path: string,
  { typed }: Pick<FilterInput, "typed">,
  more: Readonly<Record<string, string>> = {},
): string {
  return linkTo(path, { ...typed, ...more });
}

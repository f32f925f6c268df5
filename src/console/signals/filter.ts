/** The filter of the signals page, as it stands in the address. */
import { SignalBody } from "../../domain/signal.ts";
import { everySignal, type SignalFilter } from "../../domain/stored-signal.ts";

const { source, type, side } = SignalBody.properties;

/** What may be chosen from. */
export const choices: Readonly<Record<"source" | "type" | "side", readonly string[]>> = {
  source: source["enum"] as string[],
  type: type["enum"] as string[],
  side: side["enum"] as string[],
};

/** Of the fields in the form; the same in the address. */
export const filterNames = ["symbol", "source", "type", "side", "key", "from", "to"] as const;
export type FilterName = (typeof filterNames)[number];

export interface FilterInput {
  /** As typed, empty fields left out. */
  readonly typed: Readonly<Partial<Record<FilterName, string>>>;
  readonly filter: SignalFilter;
  /** Fields that nobody could understand. */
  readonly problems: readonly FilterName[];
  /** It begins after its end: nothing can match. */
  readonly isReversed: boolean;
}

const KEY_ID = /^[0-9A-Z]{26}$/;

/** What `<input type="datetime-local">` sends (HTML, "local date and time string"); read as UTC. */
const MOMENT = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}(:\d{2}(\.\d{1,3})?)?$/;

export function readFilter(parameters: URLSearchParams): FilterInput {
  const typed: Partial<Record<FilterName, string>> = {};
  for (const name of filterNames) {
    const text = parameters.get(name) ?? "";
    if (text !== "") typed[name] = text;
  }
  const from = readMoment(typed.from);
  const to = readMoment(typed.to);
  const problems = filterNames.filter((name) => {
    const text = typed[name];
    if (text === undefined || name === "symbol") return false;
    if (name === "key") return !KEY_ID.test(text);
    if (name === "from") return from === null;
    if (name === "to") return to === null;
    return !choices[name].includes(text);
  });
  const filter: SignalFilter = {
    ...everySignal,
    symbol: typed.symbol ?? null,
    source: typed.source ?? null,
    type: typed.type ?? null,
    side: typed.side ?? null,
    key_id: typed.key ?? null,
    from,
    to,
  };
  const isReversed = from !== null && to !== null && from > to;
  return { typed, filter, problems, isReversed };
}

/** A path of ours with the filter, and more parameters behind it. */
export function pathWith(
  path: string,
  { typed }: Pick<FilterInput, "typed">,
  more: Readonly<Record<string, string>> = {},
): string {
  const query = new URLSearchParams({ ...typed, ...more }).toString();
  return query === "" ? path : `${path}?${query}`;
}

function readMoment(text: string | undefined): number | null {
  if (text === undefined || !MOMENT.test(text)) return null;
  const at = Date.parse(`${text}Z`);
  // Nothing was received before 1970, nor has an id for it.
  return Number.isNaN(at) ? null : Math.max(0, at);
}

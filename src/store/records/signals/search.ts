/** What a search compares. */
import type { SignalFilter } from "../../../domain/signal/stored-signal.ts";
import type { MayHave } from "./block-ranges.ts";

/** Filters that a row must equal. */
export const equal = ["source", "type", "side", "direction", "key_id"] as const;
/** `toLowerCase` writes a final Σ as ς, but a part of a symbol may end elsewhere. */
export function folded(text: string): string {
  return text.toLowerCase().replaceAll("ς", "σ");
}

/** Whether a block may have what the filter wants; null for a filter of times alone. */
export function searchOf(filter: SignalFilter): MayHave {
  const values = equal.flatMap((column) =>
    filter[column] === null ? [] : [JSON.stringify(filter[column])],
  );
  const { symbol } = filter;
  if (values.length === 0 && symbol === null) return null;
  const part = folded(JSON.stringify(symbol ?? "").slice(1, -1));
  return ({ symbols, others }) =>
    (others === null || values.every((value) => others.includes(value))) &&
    (symbols === null || folded(symbols).includes(part));
}

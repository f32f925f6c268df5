/** Guesses which name was meant by one that does not exist. */
import { closest, distance } from "fastest-levenshtein";

/** The share of letters that may be wrong. Two swapped letters count twice. */
const WRONG_SHARE = 2 / 5;

/** Returns the closest of these names, or null when none is close. Ignores case, `_`, `-` and spaces. */
export function nearest(name: string, names: readonly string[]): string | null {
  const wanted = plain(name);
  const close = names.filter((other) => isClose(wanted, plain(other)));
  return close.length === 0 ? null : closest(name, close);
}

/** Compares the lengths first, so that a very long name costs nothing. */
function isClose(wanted: string, other: string): boolean {
  const wrongMax = Math.floor(other.length * WRONG_SHARE);
  return Math.abs(wanted.length - other.length) <= wrongMax && distance(wanted, other) <= wrongMax;
}

function plain(name: string): string {
  return name.toLowerCase().replaceAll(/[_\- ]/g, "");
}

/** Compares JSON by meaning. */
import { isDeepStrictEqual } from "node:util";

/** Ignores white space, the order of members and the notation of strings and numbers (as doubles). */
export function meansTheSame(one: string, other: string): boolean {
  return one === other || isDeepStrictEqual(parse(one), parse(other));
}

/** Makes -0 into 0, which `isDeepStrictEqual` would tell apart. */
function parse(text: string): unknown {
  if (!text.includes("-0")) return JSON.parse(text);
  return JSON.parse(text, (_name, value: unknown) => (value === 0 ? 0 : value));
}

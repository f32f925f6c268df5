/** Compares JSON by meaning. */

/** Ignores white space, the order of members and the notation of strings and numbers (as doubles). */
export function meansTheSame(one: string, other: string): boolean {
  return one === other || isSame(JSON.parse(one), JSON.parse(other));
}

/** Nesting is bounded. `isDeepStrictEqual` of node:util takes several times as long, and tells -0 from 0. */
function isSame(one: unknown, other: unknown): boolean {
  if (one === other) return true;
  if (!isNested(one) || !isNested(other)) return false;
  if (Array.isArray(one) || Array.isArray(other)) {
    if (!Array.isArray(one) || !Array.isArray(other) || one.length !== other.length) return false;
    return one.every((item, index) => isSame(item, other[index]));
  }
  let names = 0;
  for (const name in one) {
    if (!Object.hasOwn(other, name) || !isSame(one[name], other[name])) return false;
    names += 1;
  }
  for (const _ in other) names -= 1;
  return names === 0;
}

function isNested(value: unknown): value is Record<string, unknown> {
  return value !== null && typeof value === "object";
}

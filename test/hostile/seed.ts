/**
 * One number decides the whole generated corpus. It is another one in each run, and printed:
 * `HOSTILE_SEED=… bun test test/faults/hostile.test.ts` sends the same bytes again.
 */
import * as fc from "fast-check";

export const seed = readSeed();
console.log(`HOSTILE_SEED=${seed}`);

/** In every marker of this run, and in nothing else: what is looked for in logs and files. */
export const nonce = `zq${(seed >>> 0).toString(16).padStart(8, "0")}qz`;

export function sample<T>(arbitrary: fc.Arbitrary<T>, count: number): T[] {
  return fc.sample(arbitrary, { seed, numRuns: count });
}

function readSeed(): number {
  const text = process.env["HOSTILE_SEED"];
  if (text === undefined || text === "") return crypto.getRandomValues(new Int32Array(1))[0] ?? 0;
  if (!/^-?\d{1,10}$/.test(text)) throw new Error(`HOSTILE_SEED is a whole number, not "${text}"`);
  return Number(text) | 0;
}

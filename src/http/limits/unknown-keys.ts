/** Who sends keys that no desk has, for the operator: a bot with a mistyped key has no desk that sees it. */
import { DAY_MS } from "../../lib/text/time.ts";

/** Pairs of an address and a key. The rest is counted together. */
export const UNKNOWN_KEYS_MAX = 100;
/** Of them, per address: a client that makes up keys pushes out no other. */
export const PER_ADDRESS_MAX = 5;
/** A shorter text could be guessed from the hash of its start. */
const HASHED_CHARACTERS_MIN = 16;
const START_CHARACTERS = 8;
const HASH_DIGITS = 12;

export interface UnknownKey {
  readonly address: string;
  /** The first digits of the SHA-256 of the key's first characters; null: there was no key, or a short one. */
  readonly hash: string | null;
  readonly count: number;
  /** Epoch milliseconds. */
  readonly first_at: number;
  readonly at: number;
}

export class UnknownKeys {
  readonly #known = new Map<string, UnknownKey>();
  #others = 0;

  record(address: string, presented: string | null, now: number): void {
    const hash = startHash(presented);
    const name = `${address} ${hash}`;
    const known = this.#known.get(name) ?? { address, hash, count: 0, first_at: now, at: now };
    if (known.count === 0) this.#makeRoom(address, now);
    this.#known.set(name, { ...known, count: known.count + 1, at: now });
  }

  /** Those with the most requests first; `others`: requests that are not among them. */
  list(): { readonly keys: readonly UnknownKey[]; readonly others: number } {
    const keys = [...this.#known.values()].toSorted((one, other) => other.count - one.count);
    return { keys, others: this.#others };
  }

  /** The one with the fewest requests goes: a flood of keys that are made up displaces itself. */
  #makeRoom(address: string, now: number): void {
    const all = [...this.#known];
    const own = all.filter(([, known]) => known.address === address);
    const isFull = own.length >= PER_ADDRESS_MAX || all.length >= UNKNOWN_KEYS_MAX;
    const among = own.length >= PER_ADDRESS_MAX ? own : all;
    const [first, ...rest] = among;
    if (!isFull || first === undefined) return;
    const weight = ({ count, at }: UnknownKey): number => (at < now - DAY_MS ? 0 : count);
    const [name, { count }] = rest.reduce(
      (least, one) => (weight(one[1]) < weight(least[1]) ? one : least),
      first,
    );
    this.#known.delete(name);
    this.#others += count;
  }
}

function startHash(presented: string | null): string | null {
  if (presented === null || presented.length < HASHED_CHARACTERS_MIN) return null;
  const start = presented.slice(0, START_CHARACTERS);
  return new Bun.CryptoHasher("sha256").update(start).digest("hex").slice(0, HASH_DIGITS);
}

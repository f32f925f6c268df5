/** Sets of IP addresses, of both families. */
import { BlockList, isIP } from "node:net";
import { UserError } from "../lib/errors.ts";

/** No range is longer. A longer text may be anything, such as a key, and is not repeated. */
const RANGE_CHARACTERS_MAX = 49;

export class Networks {
  readonly #list = new BlockList();

  /** Addresses and CIDR ranges. Throws {@link UserError}. */
  constructor(ranges: readonly string[]) {
    for (const range of ranges) this.#add(range);
  }

  /** False for what is not an address. */
  includes(address: string): boolean {
    const plain = unmapped(address);
    const family = isIP(plain);
    return family !== 0 && this.#list.check(plain, family === 6 ? "ipv6" : "ipv4");
  }

  #add(range: string): void {
    const [, address = "", prefix] = /^([\da-f.:]+)(?:\/(\d{1,3}))?$/i.exec(range) ?? [];
    const family = isIP(address);
    const bits = family === 6 ? 128 : 32;
    const length = prefix === undefined ? bits : Number(prefix);
    if (family === 0 || length > bits) {
      const what = range.length > RANGE_CHARACTERS_MAX ? "This" : `"${range}"`;
      throw new UserError(
        `${what} is not an address range: write it like 10.0.0.0/8, 2001:db8::/32 or 203.0.113.7.`,
      );
    }
    this.#list.addSubnet(address, length, family === 6 ? "ipv6" : "ipv4");
  }
}

/** An IPv4 peer of an IPv6 listener appears as `::ffff:10.0.0.1`. */
export function unmapped(address: string): string {
  return address.toLowerCase().startsWith("::ffff:") && address.includes(".")
    ? address.slice("::ffff:".length)
    : address;
}

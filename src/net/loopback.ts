/** IP addresses as peers have them. */
import { BlockList, isIP } from "node:net";

const loopback = new BlockList();
loopback.addSubnet("127.0.0.0", 8, "ipv4");
loopback.addAddress("::1", "ipv6");

export function isLoopback(address: string): boolean {
  const plain = unmapped(address);
  const family = isIP(plain);
  return family !== 0 && loopback.check(plain, family === 6 ? "ipv6" : "ipv4");
}

/** An IPv4 peer of an IPv6 listener appears as `::ffff:10.0.0.1`. */
export function unmapped(address: string): string {
  return address.toLowerCase().startsWith("::ffff:") && address.includes(".")
    ? address.slice("::ffff:".length)
    : address;
}

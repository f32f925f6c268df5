/** Checks that a request came over HTTPS, loopback or a trusted proxy (`SPEC.md` 5, rule 8), and finds the client's address. */
import { BlockList, isIP } from "node:net";
import type { Logger } from "pino";
import { AppError } from "../domain/errors.ts";
import { UserError } from "../lib/errors.ts";
import { type Address, isLoopback, isLoopbackHost, unmapped } from "./address.ts";

const PROXY_IS_SILENT =
  "The proxy does not say how this request reached it; make it send X-Forwarded-Proto: https.";

/** Computed once, so that the common case costs a request nothing. */
export interface TransportPolicy {
  readonly isTls: boolean;
  /** The listener has a loopback address, so every peer has one. */
  readonly isLoopbackOnly: boolean;
  readonly trustedProxies: TrustedProxies;
}

export function transportPolicy(
  listen: Address,
  isTls: boolean,
  trustedProxies: TrustedProxies,
): TransportPolicy {
  return { isTls, isLoopbackOnly: isLoopbackHost(listen.host), trustedProxies };
}

/**
 * Throws `https_required` for a request that was sent unencrypted. A trusted proxy must say `https`,
 * on loopback too: only the proxy knows how the request reached it.
 */
export function requireHttps(
  policy: TransportPolicy,
  headers: Headers,
  peer: () => string | null,
): void {
  if (policy.isTls) return;
  if (policy.isLoopbackOnly && policy.trustedProxies.isEmpty) return;
  const address = peer();
  if (address === null) throw new AppError("https_required");
  if (policy.trustedProxies.includes(address)) {
    const forwarded = headers.get("x-forwarded-proto");
    if (forwarded === null) throw new AppError("https_required", { message: PROXY_IS_SILENT });
    if (isAllHttps(forwarded)) return;
  } else if (isLoopback(address)) return;
  throw new AppError("https_required");
}

/**
 * Throws `bad_request` for several `Host` headers (RFC 9112, 3.2), which Bun joins: a proxy may have
 * decided by one of them, and we by another.
 */
export function requireOneHost(headers: Headers): void {
  if (headers.get("host")?.includes(",") !== true) return;
  throw new AppError("bad_request", { message: "The request has more than one Host header." });
}

/** Each proxy of a chain appends what it saw; one unencrypted hop is enough to expose a key. */
function isAllHttps(forwarded: string): boolean {
  return forwarded.split(",").every((hop) => hop.trim().toLowerCase() === "https");
}

export class TrustedProxies {
  readonly #list = new BlockList();
  readonly isEmpty: boolean;
  /** Ranges of all addresses. */
  readonly #everyone: readonly string[];

  /** Addresses and CIDR ranges. Throws {@link UserError}. */
  constructor(ranges: readonly string[]) {
    this.isEmpty = ranges.length === 0;
    for (const range of ranges) this.#add(range);
    this.#everyone = ranges.filter((range) => /\/0+$/.test(range));
  }

  warn(onWarning: (sentence: string) => void): void {
    for (const range of this.#everyone) {
      onWarning(
        `--trust-proxy ${range} trusts every client as a proxy: any client can claim HTTPS and another address. Name the addresses of the proxies alone.`,
      );
    }
  }

  includes(address: string): boolean {
    const plain = unmapped(address);
    return this.#list.check(plain, isIP(plain) === 6 ? "ipv6" : "ipv4");
  }

  /**
   * Returns the client's address: the peer's or, if that is a trusted proxy, the last one in
   * `X-Forwarded-For` that is not. The client can forge those before it.
   */
  clientOf(headers: Headers, peer: string | null): string {
    // Split for trusted proxies only, because anyone can send thousands of commas.
    let hops: string[] | null = null;
    let client = peer ?? "";
    while (isIP(unmapped(client)) !== 0 && this.includes(client)) {
      hops ??= (headers.get("x-forwarded-for") ?? "").split(",");
      const before = withoutPort(hops.pop() ?? "");
      if (isIP(unmapped(before)) === 0) break;
      client = before;
    }
    return unmapped(client);
  }

  #add(range: string): void {
    const [address = "", prefix] = range.split("/", 2);
    const family = isIP(address);
    const bits = family === 6 ? 128 : 32;
    const length = prefix === undefined ? bits : Number(prefix);
    const isPrefix =
      /^\d{1,3}$/.test(prefix ?? "0") && length <= bits && range.split("/").length < 3;
    if (family === 0 || !isPrefix) {
      throw new UserError(
        `"${range}" is not an address range: write it like --trust-proxy 10.0.0.0/8 or --trust-proxy 127.0.0.1.`,
      );
    }
    this.#list.addSubnet(address, length, family === 6 ? "ipv6" : "ipv4");
  }
}

/**
 * Returns {@link TrustedProxies.clientOf}, and warns once of a proxy on this machine that `--trust-proxy`
 * does not name: all of its clients share one address.
 */
export function clientAddresses(
  proxies: TrustedProxies,
  log: Logger,
): (headers: Headers, peer: string | null) => string {
  let hasWarned = false;
  return (headers, peer) => {
    const isForwarded = headers.has("x-forwarded-for");
    if (!hasWarned && isForwarded && peer !== null && isLoopback(peer) && !proxies.includes(peer)) {
      hasWarned = true;
      log.warn(
        `a proxy on this machine sends X-Forwarded-For and is not trusted, so everyone behind it shares one address, and one limit on wrong passwords: start serve with --trust-proxy ${unmapped(peer)}`,
      );
    }
    return proxies.clientOf(headers, peer);
  };
}

/** Some proxies write `192.0.2.1:4711` or `[2001:db8::1]:4711`. */
function withoutPort(hop: string): string {
  const [, v6, v4] = /^\s*(?:\[([^\]]+)\](?::\d+)?|([\d.]+):\d+)\s*$/.exec(hop) ?? [];
  return v6 ?? v4 ?? hop.trim();
}

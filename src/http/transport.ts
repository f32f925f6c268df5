/** Checks that a request came over HTTPS, loopback or a trusted proxy (`SPEC.md` 5, rule 8), and finds the client's address. */
import { isIP } from "node:net";
import type { Logger } from "pino";
import { AppError } from "../domain/errors.ts";
import { Networks, unmapped } from "../domain/networks.ts";
import { type Address, isLoopback, isLoopbackHost } from "./address.ts";

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
  readonly #networks: Networks;
  readonly isEmpty: boolean;
  /** Ranges of all addresses. */
  readonly #everyone: readonly string[];

  /** Throws `UserError`: see {@link Networks}. */
  constructor(ranges: readonly string[]) {
    this.isEmpty = ranges.length === 0;
    this.#networks = new Networks(ranges);
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
    return this.#networks.includes(address);
  }

  /**
   * Returns the client's address: the peer's or, if that is a trusted proxy, the last one in
   * `X-Forwarded-For` that is not. The client can forge those before it.
   */
  clientOf(headers: Headers, peer: string | null): string {
    // Split for trusted proxies only, because anyone can send thousands of commas.
    let hops: string[] | null = null;
    let client = peer ?? "";
    while (this.includes(client)) {
      hops ??= (headers.get("x-forwarded-for") ?? "").split(",");
      const before = withoutPort(hops.pop() ?? "");
      if (isIP(unmapped(before)) === 0) break;
      client = before;
    }
    return unmapped(client);
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

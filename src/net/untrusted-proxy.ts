/** Notices a proxy on this machine that `--trust-proxy` does not name: all of its clients share one address. */
import type { Logger } from "pino";
import { isLoopback, unmapped } from "./loopback.ts";
import type { TrustedProxies } from "./transport.ts";

/** Returns what to call with each request; it warns once. */
export function warnOfUntrustedProxy(
  proxies: TrustedProxies,
  log: Logger,
): (headers: Headers, peer: string | null) => void {
  let hasWarned = false;
  return (headers, peer) => {
    if (hasWarned || peer === null || !headers.has("x-forwarded-for")) return;
    if (!isLoopback(peer) || proxies.includes(peer)) return;
    hasWarned = true;
    log.warn(
      `a proxy on this machine sends X-Forwarded-For and is not trusted, so everyone behind it shares one address, and one limit on wrong passwords: start serve with --trust-proxy ${unmapped(peer)}`,
    );
  };
}

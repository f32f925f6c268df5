/** The host names that the console answers to. */
import { isIP } from "node:net";
import { isLoopbackHost } from "../../http/address.ts";

type HostVerdict = "own" | "foreign" | "malformed";

export interface OwnHosts {
  /** The console's public URL; null: not configured. */
  readonly consoleUrl: string | null;
  /** The host of the address that it listens on. */
  readonly listenHost: string;
  /** Whether the certificate in use is for this name; false without one. */
  readonly isInCertificate: (hostname: string) => boolean;
}

/** `host`: the header as sent. Ports do not count: a proxy may leave its own out. */
export function judgeHost(host: string | null, own: OwnHosts): HostVerdict {
  const hostname = hostnameOf(host ?? "");
  if (hostname === null) return "malformed";
  return isOwn(hostname, own) ? "own" : "foreign";
}

/**
 * Accepts loopback names, for tunnels, and the address that the console listens on. Without a public URL it
 * also accepts the names in the certificate and, if the console listens on every address, any IP address:
 * no other site has an IP address as its name.
 */
function isOwn(hostname: string, { consoleUrl, listenHost, isInCertificate }: OwnHosts): boolean {
  const listenName = hostnameOf(listenHost.includes(":") ? `[${listenHost}]` : listenHost);
  if (isLoopbackHost(hostname) || hostname === listenName) return true;
  if (consoleUrl !== null) return hostname === hostnameOf(new URL(consoleUrl).host);
  const isEverywhere = listenHost === "0.0.0.0" || listenHost === "::";
  return (isEverywhere && isIP(hostname) !== 0) || isInCertificate(hostname);
}

/** Returns the name in lower case, without brackets, port and final dot; null for an invalid header. */
function hostnameOf(host: string): string | null {
  const [, name] = /^(\[[0-9a-f:.]+\]|[a-z0-9._-]+)(?::\d{1,5})?$/i.exec(host) ?? [];
  if (name === undefined || !URL.canParse(`http://${name}`)) return null;
  return new URL(`http://${name}`).hostname.replaceAll(/^\[|\]$|\.$/g, "");
}

/** Where notices may go: `--notify-allow`, which is the administrator's decision. */
import { BlockList, isIP } from "node:net";
import { UserError } from "../lib/errors.ts";

export interface AllowedHost {
  /** In lower case; of an IPv6 address without brackets. */
  readonly host: string;
  /** Null: the usual one of the URL's scheme. */
  readonly port: number | null;
  /** It may have a private address, because an administrator has named it. */
  readonly mayBePrivate: boolean;
}

/** Public services, whose names say where a request goes. */
export const PUBLIC_HOSTS = ["ntfy.sh", "hooks.slack.com", "discord.com", "discordapp.com"];
/** Allows none. */
export const NO_HOSTS = "none";

/** Reads a host, or `HOST:PORT`, with an IPv6 host in brackets. Throws `UserError`. */
export function parseAllowed(text: string): AllowedHost {
  const url = URL.canParse(`https://${text}`) ? new URL(`https://${text}`) : null;
  const isHost = /^(?:\[[0-9a-f:.]+\]|[a-z0-9._-]+)(?::\d{1,5})?$/i.test(text);
  if (url === null || !isHost) {
    throw new UserError(
      `"${text}" is not a host: write it like alerts.example.com or 10.0.0.5:8080, without https:// and path.`,
    );
  }
  const port = /:(\d+)$/.exec(text.replace(/^\[.*\]/, ""))?.[1];
  const host = bare(url);
  const mayBePrivate = !PUBLIC_HOSTS.includes(host);
  return { host, port: port === undefined ? null : Number(port), mayBePrivate };
}

/** As it is typed. */
export function writeAllowed({ host, port }: AllowedHost): string {
  const name = host.includes(":") ? `[${host}]` : host;
  return port === null ? name : `${name}:${port}`;
}

/** Returns the entry that allows the URL, or null. */
export function allowedBy(url: URL, allow: readonly AllowedHost[]): AllowedHost | null {
  const port = url.port === "" ? null : Number(url.port);
  const usual = url.protocol === "https:" ? 443 : 80;
  return (
    allow.find((entry) => entry.host === bare(url) && (entry.port ?? usual) === (port ?? usual)) ??
    null
  );
}

/** The host of a URL, without the brackets of an IPv6 address and the dot that ends a full name. */
export function bare(url: URL): string {
  return url.hostname.replace(/^\[|\]$/g, "").replace(/\.$/, "");
}

/** `never`: no request goes there, whatever is allowed: link-local with the metadata of clouds, multicast, reserved. */
export type Reach = "public" | "private" | "never";

export function reachOf(address: string): Reach {
  const family = isIP(address) === 6 ? "ipv6" : "ipv4";
  if (isPrivate.check(address, family)) return "private";
  if (family === "ipv4") return isReserved.check(address, family) ? "never" : "public";
  // The only part of IPv6 that is routed.
  return isGlobal.check(address, family) && !isReserved.check(address, family) ? "public" : "never";
}

type Net = readonly [address: string, bits: number];

function listOf(...nets: readonly Net[]): BlockList {
  const list = new BlockList();
  for (const [address, bits] of nets) {
    list.addSubnet(address, bits, isIP(address) === 6 ? "ipv6" : "ipv4");
  }
  return list;
}

const isPrivate = listOf(
  ["10.0.0.0", 8],
  ["100.64.0.0", 10], // carriers' NAT
  ["127.0.0.0", 8],
  ["172.16.0.0", 12],
  ["192.168.0.0", 16],
  ["::1", 128],
  ["fc00::", 7],
);

/** The registries of special addresses of IANA, and what answers as metadata in clouds. */
const isReserved = listOf(
  ["0.0.0.0", 8],
  ["168.63.129.16", 32], // Azure
  ["169.254.0.0", 16],
  ["192.0.0.0", 24],
  ["192.0.2.0", 24],
  ["192.88.99.0", 24],
  ["198.18.0.0", 15],
  ["198.51.100.0", 24],
  ["203.0.113.0", 24],
  ["224.0.0.0", 3],
  ["2001::", 23], // Teredo among them, which has an IPv4 address inside
  ["2001:db8::", 32],
  ["2002::", 16], // 6to4, the same
  ["3fff::", 20],
);

const isGlobal = listOf(["2000::", 3]);

/** Parses, formats and classifies addresses, and explains why one cannot be bound. */
import { isIP } from "node:net";
import { Networks } from "../domain/networks.ts";
import { UserError, systemCode } from "../lib/errors.ts";

export interface Address {
  readonly host: string;
  readonly port: number;
}

/** Reads `HOST:PORT`, with an IPv6 host in brackets. Throws {@link UserError}. */
export function parseAddress(text: string): Address {
  const [, host, port] = /^(\[[^\]]+\]|[^:\s]+):(\d+)$/.exec(text) ?? [];
  const plainHost = host?.replace(/^\[(.*)\]$/, "$1");
  const isBracketed = host !== plainHost;
  if (Number(port) > 65_535) {
    throw new UserError(
      `"${text}" has a port above 65535: write one from 0 to 65535, such as 127.0.0.1:8080.`,
    );
  }
  if (plainHost === undefined || (isBracketed && isIP(plainHost) !== 6)) {
    throw new UserError(`"${text}" is not HOST:PORT: write it like 127.0.0.1:8080 or [::1]:8080.`);
  }
  return { host: plainHost, port: Number(port) };
}

export function formatAddress({ host, port }: Address): string {
  return host.includes(":") ? `[${host}]:${port}` : `${host}:${port}`;
}

/** Returns the host of a URL, without the brackets of an IPv6 address. */
export function hostOf(url: string): string {
  return new URL(url).hostname.replace(/^\[|\]$/g, "");
}

/** Whether a URL's host is a name: WebAuthn makes no passkeys for an IP address. */
export function hasNamedHost(url: string): boolean {
  return isIP(hostOf(url)) === 0;
}

const loopback = new Networks(["127.0.0.0/8", "::1"]);

export function isLoopback(address: string): boolean {
  return loopback.includes(address);
}

export function isLoopbackHost(host: string): boolean {
  return host === "localhost" || isLoopback(host);
}

/** `serve/config.ts` completes the sentence with the flag to type. */
export class PortInUseError extends UserError {
  readonly address: Address;

  constructor(address: Address) {
    super(
      `${formatAddress(address)} is in use by another program: stop it, or choose another port`,
    );
    this.address = address;
  }
}

/** Whether the port cannot be bound. False for a host that is not an address of this machine. */
export function isTaken(address: Address): boolean {
  return /^(EADDRINUSE|EACCES)$/.test(systemCode(bindError(address)));
}

/** Throws {@link UserError} for an address that cannot be bound. */
export function requireFree(address: Address): void {
  const error = bindError(address);
  if (error !== null) throw explainBindError(error, address);
}

/** Binds the address and releases it. Returns the error, or null. */
function bindError({ host, port }: Address): unknown {
  try {
    Bun.listen({ hostname: host, port, socket: { data() {} } }).stop(true);
    return null;
  } catch (error) {
    return error;
  }
}

/** Explains the errors of binding that the user can fix. Returns others unchanged. */
export function explainBindError(error: unknown, { host, port }: Address): unknown {
  const code = systemCode(error);
  const address = formatAddress({ host, port });
  if (code === "EADDRINUSE") {
    return new PortInUseError({ host, port });
  }
  if (code === "EACCES") {
    return new UserError(
      `This user is not allowed to listen on ${address}: name a port above 1023, with a proxy in front if needed, or run the unit deploy/signalbox.service, which grants the lower ports.`,
    );
  }
  // Bun reports ENOENT for EADDRNOTAVAIL, and EINVAL or a message without a code for an unknown name.
  if (/^(EADDRNOTAVAIL|ENOTFOUND|ENOENT|EINVAL|Failed to listen at .*)$/.test(code)) {
    return new UserError(`${address} is not an address of this machine: try 127.0.0.1:${port}.`);
  }
  return error;
}

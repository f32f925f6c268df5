/** What `--acme-…` asks for. */
import { isIP } from "node:net";
import { UserError } from "../../lib/errors.ts";
import type { Address } from "../address.ts";
import { readTrusted } from "../tls.ts";

export interface AcmePlan {
  /** The names that one certificate is for. */
  readonly domains: readonly string[];
  /** The contact address of the account, or null. */
  readonly email: string | null;
  /** Its URL (RFC 8555, 7.1.1). */
  readonly directory: string;
  /** A PEM file with the certificate that the directory's own HTTPS is trusted by; null: the public ones. */
  readonly caFile: string | null;
  /** Where http-01 challenges are answered. The directory asks port 80 of each name. */
  readonly httpListen: Address;
}

/** As many names as public directories take. */
export const DOMAINS_MAX = 100;
const LABEL = /^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/;
const NAME_LENGTH_MAX = 253;

/** Reads a DNS name, in lower case. Throws {@link UserError} for what http-01 cannot prove. */
export function parseDomain(text: string): string {
  const name = text.toLowerCase().replace(/\.$/, "");
  const refuse = (problem: string): never => {
    throw new UserError(`"${text}" is ${problem}, such as --acme-domain signals.example.com.`);
  };
  if (name.startsWith("*.")) refuse("a wildcard, which http-01 cannot prove: give each name");
  // Such as 192.0.2.1, 0x7f.1 and 127.1: URLs with them have an IP address (WHATWG URL, 3.5).
  if (/(^|\.)(\d+|0x[\da-f]*)$/.test(name) || isIP(name.replace(/^\[|\]$/g, "")) !== 0) {
    refuse("an IP address: give the name that clients use");
  }
  if (name.length > NAME_LENGTH_MAX || !name.split(".").every((label) => LABEL.test(label))) {
    refuse("not a DNS name: give it without a scheme, port or path, and in ASCII (xn--…)");
  }
  return name;
}

/** Throws {@link UserError} if the file cannot be read or has no certificate. */
export function readCa({ caFile }: Pick<AcmePlan, "caFile">): string | null {
  return caFile === null ? null : readTrusted(caFile, "--acme-ca");
}

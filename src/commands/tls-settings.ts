/** The settings of `serve` about its certificate: files, or an ACME directory. */
import type { Command, Option } from "commander";
import { defaults } from "../config.ts";
import { UsageError } from "../domain/errors.ts";
import {
  type AcmePlan,
  DIRECTORY_DEFAULT,
  DOMAINS_MAX,
  HTTP_LISTEN_DEFAULT,
  parseDomain,
} from "../net/acme/plan.ts";
import { type Address, hostOf, isLoopbackHost } from "../net/address.ts";
import type { CertificateFiles } from "../net/tls.ts";
import { orInvalid, readAddress, readDirectoryUrl, readEmail } from "./options.ts";
import { refuseIdle, setting, splitList } from "./setting.ts";

export interface TlsOptions {
  readonly tlsCert?: string;
  readonly tlsKey?: string;
  readonly acmeDomain: readonly string[];
  readonly acmeEmail?: string;
  readonly acmeDirectory: string;
  readonly acmeCa?: string;
  readonly acmeHttpListen: Address;
}

export function tlsSettings(): Option[] {
  return [
    setting("--tls-cert <file>", "PEM certificate chain; requires --tls-key"),
    setting("--tls-key <file>", "PEM private key; requires --tls-cert"),
    setting(
      "--acme-domain <name>",
      `obtain a certificate for this name; --listen is then ${defaults.acmeListen} by default (repeatable, or separated by commas)`,
      collectDomains,
    ).default([], "none"),
    setting("--acme-email <address>", "contact address for the directory's account", readEmail),
    setting(
      "--acme-directory <url>",
      "ACME directory that issues the certificate",
      readDirectoryUrl,
      DIRECTORY_DEFAULT,
    ),
    setting("--acme-ca <file>", "PEM certificate that a private directory is trusted by"),
    setting(
      "--acme-http-listen <host:port>",
      "where the directory's http-01 challenges, sent to port 80, arrive",
      readAddress,
      HTTP_LISTEN_DEFAULT,
    ),
  ];
}

/** Throws `UsageError` for half of the files, and for files beside `--acme-domain`. */
export function readTlsFiles({ tlsCert, tlsKey, acmeDomain }: TlsOptions): CertificateFiles | null {
  if (acmeDomain.length > 0 && (tlsCert ?? tlsKey) !== undefined) {
    throw new UsageError(
      "--acme-domain obtains the certificate by itself: leave out --tls-cert and --tls-key (SIGNALBOX_TLS_CERT and SIGNALBOX_TLS_KEY), or --acme-domain.",
    );
  }
  if (tlsCert !== undefined && tlsKey !== undefined) return { certFile: tlsCert, keyFile: tlsKey };
  if (tlsCert === tlsKey) return null;
  throw new UsageError("TLS needs two files: give both --tls-cert FILE and --tls-key FILE.");
}

/** Null without `--acme-domain`. Throws `UsageError`. */
export function readAcme(options: TlsOptions, serve: Command): AcmePlan | null {
  const { acmeDomain: domains, acmeEmail, acmeDirectory, acmeCa, acmeHttpListen } = options;
  if (domains.length === 0) {
    const others = ["acmeEmail", "acmeDirectory", "acmeCa", "acmeHttpListen"];
    refuseIdle(others, serve, "a name for the certificate: add --acme-domain NAME");
    return null;
  }
  if (domains.length > DOMAINS_MAX) {
    throw new UsageError(
      `A certificate has at most ${DOMAINS_MAX} names: leave out some --acme-domain.`,
    );
  }
  if (acmeCa !== undefined && serve.getOptionValueSource("acmeDirectory") === "default") {
    throw new UsageError(
      "--acme-ca (SIGNALBOX_ACME_CA) is for a private directory: add --acme-directory URL, or leave it out.",
    );
  }
  return {
    domains: [...new Set(domains)],
    email: acmeEmail ?? null,
    directory: acmeDirectory,
    caFile: acmeCa ?? null,
    httpListen: acmeHttpListen,
  };
}

/** Throws `UsageError` for a public URL whose host the certificate would lack. `urls`: by their flags. */
export function requireNamed(
  { domains }: AcmePlan,
  urls: Readonly<Record<string, string | undefined>>,
): void {
  for (const [flag, url] of Object.entries(urls)) {
    const host = url === undefined ? "localhost" : hostOf(url).replace(/\.$/, "");
    // No directory issues a certificate for loopback, which people may use through SSH.
    if (isLoopbackHost(host) || domains.includes(host)) continue;
    throw new UsageError(
      `The certificate would not be valid for ${host}, the host of ${flag}: add --acme-domain ${host}, or correct ${flag}.`,
    );
  }
}

function collectDomains(text: string, before: readonly string[]): string[] {
  return [...before, ...splitList(text).map((name) => orInvalid(() => parseDomain(name)))];
}

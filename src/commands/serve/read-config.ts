/** Makes the configuration of `serve` from its settings. */
import { resolve } from "node:path";
import type { Command } from "commander";
import type { ServeConfig } from "../../serve/config.ts";
import { UsageError } from "../../lib/errors.ts";
import { acmeFiles } from "../../http/acme/files.ts";
import { type AcmePlan, DOMAINS_MAX } from "../../http/acme/plan.ts";
import { type Address, hostOf, isLoopbackHost, parseAddress } from "../../http/address.ts";
import type { CertificateFiles } from "../../http/tls.ts";
import { refuseStore } from "../../cli/folder-only.ts";
import { findOption, isGiven, refuseIdle } from "../../cli/setting.ts";
import { type MailAccount, readSmtpUrl } from "../../notices/settings.ts";
import { ACME_LISTEN, isOn, type ServeOptions } from "./settings.ts";

const backupSettings = ["backupDir", "backupEvery", "backupKeep", "backupCommand", "backupDrill"];

/** Throws `UsageError` for settings that make no sense together. */
export function readConfig(options: ServeOptions, serve: Command): ServeConfig {
  const { backupDir, acmeDomain } = options;
  for (const name of backupSettings) {
    if (!isGiven(name, serve)) continue;
    const { long, envVar } = findOption(name, serve) ?? {};
    refuseStore(`${long} (${envVar})`, options.store ?? options.data);
  }
  if (backupDir === undefined) {
    refuseIdle(backupSettings, serve, "a folder for the backups: add --backup-dir DIR");
  }
  if (options.store !== undefined && isOn("externalCheckpoints", serve)) {
    throw new UsageError(
      "--external-checkpoints (SIGNALBOX_EXTERNAL_CHECKPOINTS) is for a database in the data folder: leave it out, or --store.",
    );
  }
  const dataDir = resolve(options.data);
  const files = readTlsFiles(options);
  const acme = readAcme(options, serve);
  const isListenDefault = serve.getOptionValueSource("listen") === "default";
  const listen = acme !== null && isListenDefault ? parseAddress(ACME_LISTEN) : options.listen;
  const consoleListen = options.consoleListen === "off" ? null : options.consoleListen;
  // Clients of a proxy see the proxy's certificate.
  if (acme !== null && options.trustProxy.length === 0) {
    const consoleUrl = consoleListen === null ? undefined : options.consoleUrl;
    requireNamed(acme, { "--public-url": options.publicUrl, "--console-url": consoleUrl });
  }
  const [publicName, consoleName = publicName] = acmeDomain;
  return {
    listen,
    dataDir,
    store: options.store ?? null,
    publicUrl: options.publicUrl ?? urlAt(publicName, listen),
    tls: acme === null ? files : acmeFiles(dataDir),
    acme,
    trustedProxies: options.trustProxy,
    rateLimitPerS: options.rateLimit,
    connectionsMax: options.maxConnections,
    readListen: options.readListen === "off" ? null : options.readListen,
    opsListen: options.opsListen ?? null,
    consoleListen,
    consoleUrl:
      options.consoleUrl ??
      urlAt(consoleName, consoleListen) ??
      (isOn("quickstart", serve) && files === null ? localhostUrl(consoleListen) : null),
    stopTimeoutMs: options.stopTimeout,
    backups:
      backupDir === undefined
        ? null
        : {
            dir: resolve(backupDir),
            everyMs: options.backupEvery,
            keep: options.backupKeep,
            command: options.backupCommand ?? null,
            drillMs: options.backupDrill ?? null,
          },
    notices: { allow: options.notifyAllow, mail: readMail(options, serve) },
    externalCheckpoints: isOn("externalCheckpoints", serve),
    quickstart: isOn("quickstart", serve),
  };
}

/** Throws `UsageError` for half of the files, and for files beside `--acme-domain`. */
function readTlsFiles({ tlsCert, tlsKey, acmeDomain }: ServeOptions): CertificateFiles | null {
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
function readAcme(options: ServeOptions, serve: Command): AcmePlan | null {
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

/** Null without `--smtp-url`. Throws `UsageError`. */
function readMail({ smtpUrl, smtpFrom }: ServeOptions, serve: Command): MailAccount | null {
  if (smtpUrl === undefined) {
    refuseIdle(["smtpFrom"], serve, "a mail server: add --smtp-url URL");
    return null;
  }
  if (smtpFrom !== undefined) return { url: readSmtpUrl(smtpUrl), from: smtpFrom };
  throw new UsageError(
    "--smtp-url needs the address that e-mail is from: add --smtp-from ADDRESS (SIGNALBOX_SMTP_FROM).",
  );
}

/** Throws `UsageError` for a public URL whose host the certificate would lack. `urls`: by their flags. */
function requireNamed(
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

/** For people who try it: browsers create passkeys for this name, but not for 127.0.0.1. */
function localhostUrl(address: Address | null): string | null {
  if (address === null || address.port === 0 || !isLoopbackHost(address.host)) return null;
  return `http://localhost:${address.port}`;
}

/** Null for what only this machine reaches, perhaps through something that has another port. */
function urlAt(name: string | undefined, address: Address | null): string | null {
  if (name === undefined || address === null || address.port === 0) return null;
  if (isLoopbackHost(address.host)) return null;
  return address.port === 443 ? `https://${name}` : `https://${name}:${address.port}`;
}

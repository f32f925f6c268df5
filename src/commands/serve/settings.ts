/**
 * The settings of `serve`: one row each. A flag wins over the environment, which wins over the default.
 * `--help`, `config`, docs/configuration.md and the type of the options follow from the rows.
 */
import type { Command, Option } from "commander";
import { UsageError } from "../../lib/errors.ts";
import { logLevels } from "../../lib/log.ts";
import { parseDomain } from "../../http/acme/plan.ts";
import type { Address } from "../../http/address.ts";
import { CONNECTIONS_MAX_DEFAULT } from "../../http/limits/connections.ts";
import { TrustedProxies } from "../../http/transport.ts";
import { readKeep } from "../../cli/keep.ts";
import { type AllowedHost, NO_HOSTS, parseAllowed, PUBLIC_HOSTS } from "../../notices/allow.ts";
import {
  orInvalid,
  readAddress,
  readCommand,
  readCount,
  readDirectoryUrl,
  readEmail,
  readInterval,
  readOwnUrl,
  readSchedule,
  readWait,
} from "../../cli/options.ts";
import {
  dataSetting,
  findOption,
  optionOf,
  type Setting,
  splitList,
  storeSetting,
} from "../../cli/setting.ts";

export const QUICKSTART_DESK = "demo";

/** With a certificate from a directory, whose names lead to this machine. */
export const ACME_LISTEN = "0.0.0.0:443";

/** In the order of `--help` and of docs/configuration.md, which `bun run docs` writes. */
export const settings = {
  listen: {
    flags: "--listen <host:port>",
    text: "address of the public interface",
    read: readAddress,
    fallback: "127.0.0.1:8080",
  },
  data: dataSetting,
  store: storeSetting,
  publicUrl: {
    flags: "--public-url <url>",
    text: "URL that bots use (default: the address)",
    more: ", for `openapi.yaml` and the console's examples; `https:`, except for loopback",
    read: readOwnUrl,
  },
  tlsCert: {
    flags: "--tls-cert <file>",
    text: "PEM file with the certificate chain; requires --tls-key",
    more: ". See [HTTPS](https.md)",
  },
  tlsKey: {
    flags: "--tls-key <file>",
    text: "PEM file with the private key; requires --tls-cert",
  },
  acmeDomain: {
    flags: "--acme-domain <name>",
    text: `obtain and renew a certificate for this name; --listen is then ${ACME_LISTEN} by default (repeatable, or separated by commas)`,
    more: ". Agrees to the directory's terms of service. See [HTTPS](https.md#1-signalbox-obtains-the-certificate)",
    read: collectDomains,
    fallback: [],
  },
  acmeEmail: {
    flags: "--acme-email <address>",
    text: "address that the directory may write to",
    read: readEmail,
  },
  acmeDirectory: {
    flags: "--acme-directory <url>",
    text: "ACME directory that issues the certificate",
    read: readDirectoryUrl,
    fallback: "https://acme-v02.api.letsencrypt.org/directory",
  },
  acmeCa: {
    flags: "--acme-ca <file>",
    text: "PEM certificate that a private directory is trusted by; requires --acme-directory",
  },
  acmeHttpListen: {
    flags: "--acme-http-listen <host:port>",
    text: "where the directory's http-01 challenges, sent to port 80, arrive",
    more: "; nothing else is answered there",
    read: readAddress,
    fallback: "0.0.0.0:80",
  },
  trustProxy: {
    flags: "--trust-proxy <cidr>",
    text: "trust X-Forwarded-Proto and X-Forwarded-For from these addresses (repeatable, or separated by commas)",
    more: ": the address or CIDR range of a proxy that terminates TLS. `serve` warns of `0.0.0.0/0` and `::/0`, which trust every client",
    read: collectRanges,
    fallback: [],
  },
  rateLimit: {
    flags: "--rate-limit <n>",
    text: "requests per second per desk; bursts of twice that; 0 for no limit",
    read: readCount,
    fallback: 5_000,
  },
  maxConnections: {
    flags: "--max-connections <n>",
    text: "open connections on the public interface; 0 for as many as ulimit -n allows",
    more: ". The maximum is ¾ of `ulimit -n`, less the console's quarter of that (at most 256), up to 256 for `--read-listen` and up to 64 each for `--ops-listen` and `--acme-domain`. With `ulimit -n` 1024 and the console: 768 − 192 = 576",
    read: readCount,
    fallback: CONNECTIONS_MAX_DEFAULT,
  },
  consoleListen: {
    flags: "--console-listen <host:port>",
    text: "address of the desk console, or off",
    more: ". See [the console](console.md); the same HTTPS rules hold",
    read: readAddressOrOff,
    fallback: "127.0.0.1:8081",
  },
  consoleUrl: {
    flags: "--console-url <url>",
    text: "the console's public URL (default: its address)",
    more: ", with `--quickstart` under the name `localhost`; `https:`, except for loopback",
    read: readOwnUrl,
  },
  readListen: {
    flags: "--read-listen <host:port>",
    text: "address of the feed for read keys, or off",
    more: ". See [the feed](feed.md); the same HTTPS rules hold",
    read: readAddressOrOff,
    fallback: "off",
  },
  opsListen: {
    flags: "--ops-listen <host:port>",
    text: "serve /healthz, /readyz and /metrics on TCP too",
    more: ", in addition to the socket `ops.sock` in the data folder. See [metrics](metrics.md)",
    read: readAddress,
  },
  stopTimeout: {
    flags: "--stop-timeout <span>",
    text: "how long a stop waits for requests in flight",
    read: readWait,
    fallback: "10s",
  },
  backupDir: {
    flags: "--backup-dir <dir>",
    text: "make backups in this folder",
    more: ". See [backups](operations.md#backups)",
  },
  backupEvery: {
    flags: "--backup-every <span>",
    text: "interval between backups",
    more: "; needs `--backup-dir`",
    read: readInterval,
    fallback: "1h",
  },
  backupKeep: {
    flags: "--backup-keep <n>",
    text: "how many of the latest backups to keep, or hourly, daily and weekly ones, such as 24h,7d,4w",
    more: "; needs `--backup-dir`. See [tiers](operations.md#tiers)",
    read: readKeep,
    fallback: 24,
  },
  backupCommand: {
    flags: "--backup-command <command>",
    text: "shell command that sends each backup away; {} is its path",
    more: "; needs `--backup-dir`. See [sending backups away](operations.md#sending-backups-away)",
    read: readCommand,
  },
  backupDrill: {
    flags: "--backup-drill <span>",
    text: "interval between restore drills: the newest backup is restored beside the data, verified and compared",
    more: "; needs `--backup-dir`. See [restore drills](operations.md#restore-drills)",
    read: readSchedule,
  },
  notifyAllow: {
    flags: "--notify-allow <host>",
    text: "hosts that members may send notices to, or none (repeatable, or separated by commas)",
    more: ": a name or an address, with a port unless it is the usual one. A private address needs to be listed here for administrators, too. See [notices](notices.md#where-notices-may-go)",
    read: collectHosts,
    fallback: PUBLIC_HOSTS.join(","),
  },
  smtpUrl: {
    flags: "--smtp-url <url>",
    text: "mail server that sends notices, such as smtp://user:password@mail.example.com:587",
    more: "; TLS is required, except on loopback. Better in the environment, where other users do not see the password. See [notices](notices.md#e-mail)",
  },
  smtpFrom: {
    flags: "--smtp-from <address>",
    text: "address that notices by e-mail are from; requires --smtp-url",
    read: readEmail,
  },
  externalCheckpoints: {
    flags: "--external-checkpoints",
    text: "leave checkpoints to a program that replicates the database, such as Litestream",
    more: ". See [Litestream](litestream.md)",
  },
  logLevel: {
    flags: "--log-level <level>",
    text: "lowest level to log",
    more: ": `debug`, `info`, `warn`, `error` or `silent`",
    choices: logLevels,
    fallback: "info",
  },
  quickstart: {
    flags: "--quickstart",
    text: `create desk "${QUICKSTART_DESK}" with a key and a console link if there is no desk`,
    more: ". If stdout is no terminal, no key is made; the log says how to get one, as it does if there is a desk",
  },
} as const satisfies Readonly<Record<string, Setting>>;

type Settings = typeof settings;
type Value<Row> = Row extends { readonly read: (...args: never[]) => infer Read }
  ? Read
  : Row extends { readonly choices: readonly (infer Choice)[] }
    ? Choice
    : string;

/** A value without a fallback may be undefined. */
export type ServeOptions = {
  readonly [Name in keyof Settings]:
    | Value<Settings[Name]>
    | (Settings[Name] extends { readonly fallback: unknown } ? never : undefined);
};

export function serveSettings(): Option[] {
  return Object.values(settings).map(optionOf);
}

function readAddressOrOff(text: string): Address | "off" {
  return text === "off" ? text : readAddress(text);
}

function collectRanges(text: string, before: readonly string[]): string[] {
  const ranges = splitList(text);
  orInvalid(() => new TrustedProxies(ranges));
  return [...before, ...ranges];
}

function collectDomains(text: string, before: readonly string[]): string[] {
  return [...before, ...splitList(text).map((name) => orInvalid(() => parseDomain(name)))];
}

const publicHosts = PUBLIC_HOSTS.map(parseAllowed);

/** The first value replaces the default. */
function collectHosts(text: string, before?: readonly AllowedHost[]): readonly AllowedHost[] {
  if (before === undefined) return publicHosts;
  const others = before === publicHosts ? [] : before;
  if (text === NO_HOSTS) return others;
  return [...others, ...splitList(text).map((host) => orInvalid(() => parseAllowed(host)))];
}

/** True if a flag without a value is given; the environment can also say no. Throws `UsageError` for what is neither. */
export function isOn(name: string, serve: Command): boolean {
  if (serve.getOptionValueSource(name) !== "env") return serve.getOptionValue(name) === true;
  const variable = findOption(name, serve)?.envVar ?? "";
  const value = process.env[variable] ?? "";
  if (/^(|0|no|off|false)$/i.test(value)) return false;
  if (/^(1|yes|on|true)$/i.test(value)) return true;
  throw new UsageError(`${variable} is "${value}": write on or off.`);
}

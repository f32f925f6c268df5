/**
 * The settings of `serve`: one row each. A flag wins over the environment, which wins over the default;
 * the environment's name follows from the flag (`--tls-cert`: `SIGNALBOX_TLS_CERT`).
 */
import { resolve } from "node:path";
import { type Command, Option } from "commander";
import { defaults, type ServeConfig } from "../config.ts";
import { type LogLevel, logLevels } from "../log.ts";
import { acmeFiles } from "../net/acme/plan.ts";
import { type Address, isLoopbackHost, parseAddress } from "../net/address.ts";
import { TrustedProxies } from "../net/transport.ts";
import {
  dataOption,
  orInvalid,
  readAddress,
  readCommand,
  readCount,
  readInterval,
  readOwnUrl,
  readPositive,
  readWait,
} from "./options.ts";
import { findOption, refuseIdle, setting, splitList } from "./setting.ts";
import {
  readAcme,
  readTlsFiles,
  requireNamed,
  type TlsOptions,
  tlsSettings,
} from "./tls-settings.ts";

export const QUICKSTART_DESK = "demo";

export interface ServeOptions extends TlsOptions {
  readonly listen: Address;
  readonly data: string;
  readonly publicUrl?: string;
  readonly trustProxy: readonly string[];
  readonly rateLimit: number;
  readonly maxConnections: number;
  readonly consoleListen: Address | "off";
  readonly consoleUrl?: string;
  readonly readListen: Address | "off";
  readonly opsListen?: Address;
  readonly stopTimeout: number;
  readonly backupDir?: string;
  readonly backupEvery: number;
  readonly backupKeep: number;
  readonly backupCommand?: string;
  readonly logLevel: LogLevel;
  readonly check?: true;
}

export function serveSettings(): Option[] {
  return [
    setting("--listen <host:port>", "address to listen on", readAddress, defaults.listen),
    dataOption(),
    setting("--public-url <url>", "URL that clients use (default: the address)", readOwnUrl),
    ...tlsSettings(),
    setting(
      "--trust-proxy <cidr>",
      "trust X-Forwarded-Proto and X-Forwarded-For from these addresses (repeatable, or separated by commas)",
      collectRanges,
    ).default([], "none"),
    setting(
      "--rate-limit <n>",
      "requests per second per desk; bursts of twice that; 0 for no limit",
      readCount,
      defaults.rateLimitPerS,
    ),
    setting(
      "--max-connections <n>",
      "open connections; 0 for as many as ulimit -n allows",
      readCount,
      defaults.connectionsMax,
    ),
    setting(
      "--console-listen <host:port>",
      "address of the desk console, or off",
      readAddressOrOff,
      defaults.consoleListen,
    ),
    setting("--console-url <url>", "the console's public URL (default: its address)", readOwnUrl),
    setting(
      "--read-listen <host:port>",
      "address of the feed for read keys, or off",
      readAddressOrOff,
      "off",
    ),
    setting(
      "--ops-listen <host:port>",
      "serve /healthz, /readyz and /metrics on TCP too",
      readAddress,
    ),
    setting(
      "--stop-timeout <span>",
      "how long a stop waits for requests in flight",
      readWait,
      defaults.stopTimeout,
    ),
    setting("--backup-dir <dir>", "make backups in this folder"),
    setting(
      "--backup-every <span>",
      "interval between backups",
      readInterval,
      defaults.backupEvery,
    ),
    setting("--backup-keep <n>", "number of backups to keep", readPositive, defaults.backupKeep),
    setting(
      "--backup-command <command>",
      "shell command that sends each backup away; {} is its path",
      readCommand,
    ),
    setting(
      "--external-checkpoints",
      "leave checkpoints to a program that replicates the database, such as Litestream",
    ),
    setting("--log-level <level>", "lowest level to log")
      .choices(logLevels)
      .default(defaults.logLevel),
    setting(
      "--quickstart",
      `create desk "${QUICKSTART_DESK}" with a key and a console link if there is no desk`,
    ),
  ];
}

function readAddressOrOff(text: string): Address | "off" {
  return text === "off" ? text : readAddress(text);
}

interface DescribedSetting {
  readonly flag: string;
  readonly variable: string;
  /** As it was written; `on` or `off` for a switch; null: none. */
  readonly value: string | null;
  readonly source: "default" | "environment" | "flag";
}

/** `typed`: the values given as flags, by the option's name. */
export function describeSettings(
  command: Command,
  typed: ReadonlyMap<string, readonly string[]>,
): DescribedSetting[] {
  return command.options.flatMap((option): DescribedSetting[] => {
    const { long, envVar } = option;
    if (typeof long !== "string" || envVar === undefined) return [];
    const name = option.attributeName();
    const from = command.getOptionValueSource(name);
    const source = from === "cli" ? "flag" : from === "env" ? "environment" : "default";
    const fallback =
      long === "--listen" && isAcme(command)
        ? defaults.acmeListen
        : (option.defaultValueDescription ?? (option.defaultValue as string | undefined));
    const written = {
      default: fallback === "none" ? null : (fallback ?? null),
      environment: process.env[envVar] ?? "",
      flag: typed.get(name)?.join(",") ?? "",
    };
    const value = option.required ? written[source] : isOn(name, command) ? "on" : "off";
    return [{ flag: long, variable: envVar, value, source }];
  });
}

/** True if a flag without a value is given; the environment can also say no. */
export function isOn(name: string, serve: Command): boolean {
  if (serve.getOptionValueSource(name) !== "env") return serve.getOptionValue(name) === true;
  const value = process.env[findOption(name, serve)?.envVar ?? ""] ?? "";
  return !/^(|0|no|off|false)$/i.test(value);
}

/** Throws `UsageError` for settings that make no sense together. */
export function readConfig(options: ServeOptions, serve: Command): ServeConfig {
  const { backupDir, acmeDomain } = options;
  if (backupDir === undefined) {
    refuseIdle(
      ["backupEvery", "backupKeep", "backupCommand"],
      serve,
      "a folder for the backups: add --backup-dir DIR",
    );
  }
  const dataDir = resolve(options.data);
  const files = readTlsFiles(options);
  const acme = readAcme(options, serve);
  const isListenDefault = serve.getOptionValueSource("listen") === "default";
  const listen =
    acme !== null && isListenDefault ? parseAddress(defaults.acmeListen) : options.listen;
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
    publicUrl: options.publicUrl ?? urlAt(publicName, listen),
    tls: acme === null ? files : acmeFiles(dataDir),
    acme,
    trustedProxies: options.trustProxy,
    rateLimitPerS: options.rateLimit,
    connectionsMax: options.maxConnections,
    readListen: options.readListen === "off" ? null : options.readListen,
    opsListen: options.opsListen ?? null,
    consoleListen,
    consoleUrl: options.consoleUrl ?? urlAt(consoleName, consoleListen),
    stopTimeoutMs: options.stopTimeout,
    backups:
      backupDir === undefined
        ? null
        : {
            dir: resolve(backupDir),
            everyMs: options.backupEvery,
            keep: options.backupKeep,
            command: options.backupCommand ?? null,
          },
    externalCheckpoints: isOn("externalCheckpoints", serve),
  };
}

function isAcme(serve: Command): boolean {
  return (serve.getOptionValue("acmeDomain") as ServeOptions["acmeDomain"]).length > 0;
}

/** Null for what only this machine reaches, perhaps through something that has another port. */
function urlAt(name: string | undefined, address: Address | null): string | null {
  if (name === undefined || address === null || address.port === 0) return null;
  if (isLoopbackHost(address.host)) return null;
  return address.port === 443 ? `https://${name}` : `https://${name}:${address.port}`;
}

function collectRanges(text: string, before: readonly string[]): string[] {
  const ranges = splitList(text);
  orInvalid(() => new TrustedProxies(ranges));
  return [...before, ...ranges];
}

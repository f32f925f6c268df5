/** `signalbox serve`: the server, from its flags to its last line. */
import { resolve } from "node:path";
import { Command, Option } from "commander";
import { type App, startApp } from "../app.ts";
import { defaults, explainPortInUse, type ServeConfig } from "../config.ts";
import { TrustedProxies } from "../net/transport.ts";
import { toType } from "./hint.ts";
import { createLog, type Log, type LogLevel, logLevels } from "../log.ts";
import { backUp, refuseDataFolder } from "./backup.ts";
import type { Address } from "../net/address.ts";
import { stopSignal } from "./stop-signal.ts";
import { UsageError, messageOf } from "../domain/errors.ts";
import { firstSignalCommand } from "../domain/first-signal.ts";
import { VERSION } from "../version.ts";
import {
  dataOption,
  orInvalid,
  readAddress,
  readCount,
  readDuration,
  readInterval,
  readPositive,
  readOwnUrl,
  withRegistry,
} from "./options.ts";
import { printData } from "./print.ts";

/** As commander gives it: flags over environment over defaults. */
interface ServeOptions {
  listen: Address;
  data: string;
  publicUrl?: string;
  tlsCert?: string;
  tlsKey?: string;
  trustProxy: string[];
  rateLimit: number;
  maxConnections: number;
  opsListen?: Address;
  consoleListen: Address | "off";
  consoleUrl?: string;
  stopTimeout: number;
  backupDir?: string;
  backupEvery: number;
  backupKeep: number;
  externalCheckpoints?: boolean;
  logLevel: LogLevel;
  quickstart?: boolean;
}

const QUICKSTART_DESK = "demo";
/** How long a process whose storage has failed waits for its last answers to leave. */
const LAST_ANSWERS_MS = 2_000;

export function serveCommand(): Command {
  const command = new Command("serve")
    .description("take signals over HTTP")
    .addHelpText(
      "after",
      `
Each flag can also be set in the environment, as shown; a flag wins over the environment.

Examples:
  $ signalbox serve --quickstart
  $ signalbox serve --listen 0.0.0.0:443 --tls-cert cert.pem --tls-key key.pem --public-url https://signals.example.com
  $ signalbox serve --listen 10.0.0.5:8080 --trust-proxy 10.0.0.2
  $ SIGNALBOX_DATA=/var/lib/signalbox signalbox serve

Signals: SIGTERM and SIGINT stop in good order, another one after half a second or more at once; SIGHUP reads the certificate again.`,
    )
    .action((options: ServeOptions, self: Command) => {
      refuseIdleBackupFlags(options, self);
      return serve({
        ...options,
        quickstart: isSet("quickstart", self),
        externalCheckpoints: isSet("externalCheckpoints", self),
      });
    });
  for (const option of serveOptions()) command.addOption(option);
  return command;
}

function serveOptions(): Option[] {
  return [
    new Option("--listen <host:port>", "the address to listen on")
      .env("SIGNALBOX_LISTEN")
      .argParser(readAddress)
      .default(readAddress(defaults.listen), defaults.listen),
    dataOption(),
    new Option("--public-url <url>", "what clients call this server (default: the address)")
      .env("SIGNALBOX_PUBLIC_URL")
      .argParser(readOwnUrl),
    new Option("--tls-cert <file>", "PEM certificate chain; needs --tls-key").env(
      "SIGNALBOX_TLS_CERT",
    ),
    new Option("--tls-key <file>", "PEM private key; needs --tls-cert").env("SIGNALBOX_TLS_KEY"),
    new Option(
      "--trust-proxy <cidr>",
      "believe X-Forwarded-Proto from these addresses (repeatable, or with commas)",
    )
      .env("SIGNALBOX_TRUST_PROXY")
      .argParser(collectRanges)
      .default([], "none"),
    new Option("--rate-limit <n>", "requests a second and desk, 0 for no limit")
      .env("SIGNALBOX_RATE_LIMIT")
      .argParser(readCount)
      .default(defaults.rateLimit),
    new Option("--max-connections <n>", "open at once, 0 for as many as ulimit -n allows")
      .env("SIGNALBOX_MAX_CONNECTIONS")
      .argParser(readCount)
      .default(defaults.connectionsMax),
    new Option("--console-listen <host:port>", "where the desks' console is, or off")
      .env("SIGNALBOX_CONSOLE_LISTEN")
      .argParser((text) => (text === "off" ? text : readAddress(text)))
      .default(readAddress(defaults.consoleListen), defaults.consoleListen),
    new Option("--console-url <url>", "what browsers call the console (default: its address)")
      .env("SIGNALBOX_CONSOLE_URL")
      .argParser(readOwnUrl),
    new Option("--ops-listen <host:port>", "serve /healthz and /readyz on TCP too")
      .env("SIGNALBOX_OPS_LISTEN")
      .argParser(readAddress),
    new Option("--stop-timeout <span>", "how long a stop waits for requests in flight")
      .env("SIGNALBOX_STOP_TIMEOUT")
      .argParser(readDuration)
      .default(readDuration(defaults.stopTimeout), defaults.stopTimeout),
    new Option("--backup-dir <dir>", "make backups into this folder").env("SIGNALBOX_BACKUP_DIR"),
    new Option("--backup-every <span>", "one after every span")
      .env("SIGNALBOX_BACKUP_EVERY")
      .argParser(readInterval)
      .default(readDuration(defaults.backupEvery), defaults.backupEvery),
    new Option("--backup-keep <n>", "keep the newest backups")
      .env("SIGNALBOX_BACKUP_KEEP")
      .argParser(readPositive)
      .default(defaults.backupKeep),
    new Option(
      "--external-checkpoints",
      "leave the log to another program that replicates it, such as Litestream",
    ).env("SIGNALBOX_EXTERNAL_CHECKPOINTS"),
    new Option("--log-level <level>", "what to log")
      .env("SIGNALBOX_LOG_LEVEL")
      .choices(logLevels)
      .default(defaults.logLevel),
    new Option(
      "--quickstart",
      `create desk "${QUICKSTART_DESK}" with a key if there is no desk`,
    ).env("SIGNALBOX_QUICKSTART"),
  ];
}

async function serve(options: ServeOptions): Promise<void> {
  const config = readConfig(options);
  if (config.backups !== null) refuseDataFolder(config.backups.dir, config.dataDir);
  const log = await createLog(options.logLevel);
  endAtDefect(log);
  try {
    await serveUntilStopped(config, options, log);
  } finally {
    await log.end();
  }
}

async function serveUntilStopped(
  config: ServeConfig,
  options: ServeOptions,
  log: Log,
): Promise<void> {
  // From before the first answer: what has been served is ended in good order.
  const stopped = stopSignal(log);
  const fatal = Promise.withResolvers<never>();
  const app = await startApp({
    config,
    log: log.logger,
    onFatal: (reason) => fatal.reject(new Error(reason)),
    makeBackup: (file, signal) => backUp(config.dataDir, file, { signal }),
  }).catch((error: unknown) => {
    throw explainPortInUse(error, config);
  });
  if (options.quickstart === true) quickstart(app, options.data, log);
  announce(app, options, log);
  process.on("SIGHUP", () => app.reloadCertificate());
  try {
    await Promise.race([stopped, fatal.promise]);
    await app.stop();
    // What fails while it closes is no clean end either.
    await Promise.race([fatal.promise, Promise.resolve()]);
    log.logger.info("stopped");
  } catch (error) {
    await dieOfStorage(error, app, log);
  }
}

/** A defect of ours ends the process, with its reason in the log. */
function endAtDefect(log: Log): void {
  const end = (err: unknown): void => {
    log.logger.fatal({ err }, "ended by a defect: please report this line");
    void log.end().then(() => process.exit(1));
  };
  process.on("uncaughtException", end);
  process.on("unhandledRejection", end);
}

function refuseIdleBackupFlags({ backupDir }: ServeOptions, command: Command): void {
  if (backupDir !== undefined) return;
  for (const name of ["backupEvery", "backupKeep"]) {
    if (command.getOptionValueSource(name) === "default") continue;
    const option = command.options.find((candidate) => candidate.attributeName() === name);
    throw new UsageError(
      `${option?.long} (${option?.envVar}) does nothing without a folder for the backups: add --backup-dir DIR.`,
    );
  }
}

/** In the environment there is no way to leave a flag out but to say no. */
function isSet(name: "quickstart" | "externalCheckpoints", command: Command): boolean {
  if (command.getOptionValueSource(name) !== "env") return command.getOptionValue(name) === true;
  const option = command.options.find((candidate) => candidate.attributeName() === name);
  return !/^(|0|no|off|false)$/i.test(process.env[option?.envVar ?? ""] ?? "");
}

function readConfig(options: ServeOptions): ServeConfig {
  const { tlsCert, tlsKey } = options;
  if ((tlsCert === undefined) !== (tlsKey === undefined)) {
    throw new UsageError("TLS takes two files: give both --tls-cert FILE and --tls-key FILE.");
  }
  return {
    listen: options.listen,
    dataDir: resolve(options.data),
    publicUrl: options.publicUrl ?? null,
    tls:
      tlsCert === undefined || tlsKey === undefined ? null : { certFile: tlsCert, keyFile: tlsKey },
    trustedProxies: options.trustProxy,
    rateLimit: options.rateLimit,
    connectionsMax: options.maxConnections,
    opsListen: options.opsListen ?? null,
    consoleListen: options.consoleListen === "off" ? null : options.consoleListen,
    consoleUrl: options.consoleUrl ?? null,
    stopTimeoutMs: options.stopTimeout,
    backups:
      options.backupDir === undefined
        ? null
        : {
            dir: resolve(options.backupDir),
            everyMs: options.backupEvery,
            keep: options.backupKeep,
          },
    externalCheckpoints: options.externalCheckpoints === true,
  };
}

function announce(app: App, options: ServeOptions, log: Log): void {
  const next = app.hasDesks()
    ? ""
    : `; no desk yet, create one with: ${toType("desk create NAME", options.data)}`;
  log.logger.info(
    `signalbox ${VERSION} takes signals at ${app.publicUrl}/v1/signals, data in ${resolve(options.data)}${next}`,
  );
  if (app.consoleUrl !== null) log.logger.info(`desks manage their keys at ${app.consoleUrl}`);
}

/** Prints a command that works when pasted, the one time that there is a key to put in it. */
function quickstart(app: App, dataDir: string, log: Log): void {
  const minted = withRegistry(dataDir, (registry) => {
    const names = registry.listDesks().map(({ name }) => name);
    const [first] = names;
    if (first !== undefined) {
      const desk = names.includes(QUICKSTART_DESK) ? QUICKSTART_DESK : first;
      log.logger.info(
        `--quickstart creates nothing: desk "${desk}" exists, and its keys cannot be shown again; mint another with: ${toType(`key mint --desk ${desk}`, dataDir)}`,
      );
      return null;
    }
    registry.createDesk(QUICKSTART_DESK, { ifMissing: true });
    return registry.mintKey({ desk: QUICKSTART_DESK, label: "quickstart", expiresInMs: null });
  });
  if (minted === null) return;
  const text = `Desk "${QUICKSTART_DESK}" has a key, shown this once. Paste this to store a signal:

${firstSignalCommand(app.publicUrl, minted.key, "my-first-signal")}
`;
  try {
    printData(text);
  } catch (error) {
    const reason = messageOf(error);
    log.logger.warn(
      { reason },
      `nobody has seen the key of desk "${QUICKSTART_DESK}": mint another with: ${toType(`key mint --desk ${QUICKSTART_DESK}`, dataDir)}`,
    );
  }
}

/**
 * Nothing may be stored after a failed fsync: once the clients have their 503 the process ends, and
 * its supervisor starts another, which reads the disk again.
 */
async function dieOfStorage(error: unknown, app: App, log: Log): Promise<never> {
  const reason = messageOf(error);
  await Promise.race([Promise.allSettled([app.stop()]), Bun.sleep(LAST_ANSWERS_MS)]);
  log.logger.fatal(
    { reason },
    "storage failed: signals in flight were answered 503, their outcome is unknown; restart signalbox, and look at the disk if this comes again",
  );
  await log.end();
  process.exit(1);
}

function collectRanges(text: string, before: string[]): string[] {
  const ranges = text.split(",").map((range) => range.trim());
  const named = ranges.filter((range) => range !== "");
  orInvalid(() => new TrustedProxies(named));
  return [...before, ...named];
}

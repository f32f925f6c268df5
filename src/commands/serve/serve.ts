/** `signalbox serve`: runs the server until a signal or a failure stops it. */
import { type Command, Option } from "commander";
import type { App } from "../../serve/app.ts";
import { findExpired } from "../../checks/certificate.ts";
import { explainPortInUse, type ServeConfig, whereOf } from "../../serve/config.ts";
import { messageOf } from "../../lib/errors.ts";
import { placeName } from "../../lib/place.ts";
import { createLog, type Log, logWarnings } from "../../lib/log.ts";
import { VERSION } from "../../lib/version.ts";
import { backupWork } from "../backup.ts";
import { checkConfig } from "./check.ts";
import { defineCommand } from "../../cli/define.ts";
import { toType } from "../../cli/hint.ts";
import { quickstart } from "./quickstart.ts";
import { readConfig } from "./read-config.ts";
import { type ServeOptions, serveSettings } from "./settings.ts";
import { requireKnownSettings } from "./unknown-settings.ts";
import { stopSignal } from "../../cli/stop-signal.ts";

/** How long a process whose storage has failed waits for its last answers to be sent. */
const LAST_ANSWERS_MS = 2_000;

export const serveCommand = defineCommand({
  name: "serve",
  description: "take signals over HTTP",
  options: [
    ...serveSettings(),
    new Option("--check", "check the configuration, without starting: exit code 0 if it is valid"),
  ],
  notes: `
Every flag can also be set in the environment, as shown; the flag wins.

SIGTERM and SIGINT stop the server gracefully; a second one, half a second later or more, stops it at
once. SIGHUP reloads the certificate, or tries again at once if it could not be obtained.

--check starts nothing and creates nothing: it prints the messages of a start, and has its exit code.

--acme-domain obtains and renews a certificate by itself; giving it accepts the terms of service of the
directory, which is Let's Encrypt if you name no other.`,
  examples: [
    "signalbox serve --quickstart",
    "signalbox serve --acme-domain signals.example.com",
    "signalbox serve --listen 0.0.0.0:443 --tls-cert cert.pem --tls-key key.pem --public-url https://signals.example.com",
    "signalbox serve --listen 10.0.0.5:8080 --trust-proxy 10.0.0.2",
    "signalbox serve --check --tls-cert cert.pem --tls-key key.pem",
    "SIGNALBOX_DATA=/var/lib/signalbox signalbox serve",
  ],
  run: serve,
});

async function serve(options: ServeOptions & { check?: true }, command: Command): Promise<void> {
  requireKnownSettings();
  const config = readConfig(options, command);
  if (options.check) return checkConfig(config);
  const log = await createLog(options.logLevel, whereOf(config));
  endAtDefect(log);
  logWarnings(log.logger);
  // Before the first request, so that every one is also stopped gracefully.
  const stopped = stopSignal(log, ["SIGTERM", "SIGINT"]);
  const stopping = new AbortController();
  void stopped.then(() => stopping.abort());
  const fatal = Promise.withResolvers<never>();
  // Loaded here, because other commands do not need it and start sooner without it.
  const { startApp } = await import("../../serve/app.ts");
  // A reload that comes before there is anything to reload must not end the process.
  process.on("SIGHUP", () => {});
  try {
    const starting = startApp({
      config,
      log: log.logger,
      onFatal: (reason, nextStep) => fatal.reject(new StorageFailure(reason, nextStep)),
      backupWork: backupWork(config.dataDir),
      stopping: stopping.signal,
      onReload: (reload) => process.on("SIGHUP", reload),
    });
    // A start may wait for its first certificate for days.
    const app = await Promise.race([starting, fatal.promise]).catch((error: unknown) => {
      if (error === stopping.signal.reason) return null;
      if (!(error instanceof StorageFailure)) throw explainPortInUse(error, config);
      stopping.abort();
      return dieOfStorage(error, () => starting, log);
    });
    if (app === null) {
      log.logger.info("stopped");
      return;
    }
    if (config.quickstart) await quickstart(app, options.store ?? options.data, log);
    await announce(app, config, toType("desk create NAME", options.data), log);
    await runUntil(stopped, fatal.promise, app, log);
  } finally {
    await log.end();
  }
}

/** Stops the app when `stopped` resolves; ends the process with code 1 when `fatal` rejects. */
async function runUntil(
  stopped: Promise<void>,
  fatal: Promise<never>,
  app: App,
  log: Log,
): Promise<void> {
  try {
    await Promise.race([stopped, fatal]);
    await app.stop();
    // Storage that fails while it closes is a failure, too.
    await Promise.race([fatal, Promise.resolve()]);
    log.logger.info("stopped");
  } catch (error) {
    await dieOfStorage(error, () => app.stop(), log);
  }
}

class StorageFailure extends Error {
  readonly nextStep: string;

  constructor(reason: string, nextStep: string) {
    super(reason);
    this.nextStep = nextStep;
  }
}

/** Ends the process at a defect of ours, with the reason in the log. */
function endAtDefect(log: Log): void {
  const end = (err: unknown): void => {
    log.logger.fatal({ err }, "ended by a defect: please report this line");
    void log.end().then(() => process.exit(1));
  };
  process.on("uncaughtException", end);
  process.on("unhandledRejection", end);
}

async function announce(
  app: App,
  config: ServeConfig,
  createDesk: string,
  log: Log,
): Promise<void> {
  const place = placeName(whereOf(config));
  const next = (await app.hasDesks()) ? "" : `; no desk yet, create one with: ${createDesk}`;
  log.logger.info(
    `signalbox ${VERSION} takes signals at ${app.publicUrl}/v1/signals, data in ${place}${next}`,
  );
  const expired = findExpired(config);
  if (expired !== null) log.logger.warn({ next: expired.next }, expired.sentence);
  if (app.feedUrl !== null) log.logger.info(`readers get signals at ${app.feedUrl}`);
  if (app.consoleUrl !== null) log.logger.info(`desks manage their keys at ${app.consoleUrl}`);
}

/**
 * Nothing may be stored after a failed fsync. Once the clients have their 503 the process ends, so that
 * its supervisor starts one that reads the disk again.
 */
async function dieOfStorage(
  error: unknown,
  stop: () => Promise<unknown>,
  log: Log,
): Promise<never> {
  await Promise.race([Promise.allSettled([stop()]), Bun.sleep(LAST_ANSWERS_MS)]);
  const nextStep =
    error instanceof StorageFailure ? error.nextStep : "restart signalbox, and report this line";
  log.logger.fatal(
    { reason: messageOf(error) },
    `storage failed: signals in flight were answered 503, their outcome is unknown; ${nextStep}`,
  );
  await log.end();
  process.exit(1);
}
